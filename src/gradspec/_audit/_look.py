"""A first look at a function: the dtype that it takes, and what plain calls of it show."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from gradspec._audit._measured import Measured
from gradspec._audit._own_dtype import accepted, in_dtype, plain_error, refused
from gradspec._audit._probe import measure
from gradspec._audit._remarks import of_dtypes
from gradspec._audit._subject import Subject
from gradspec._audit._trials import flat_trial, takes_gradient
from gradspec._audit._untrained import refused_untrained
from gradspec.laws.tensor.support._call import Inputs, vjp
from gradspec.profile import Profile
from gradspec.spec import Case


@dataclass(frozen=True, kw_only=True)
class Look:
    """Results of plain calls of a function, before any law runs."""

    measured: Measured
    #: The dtype that took the place of the one of the calls.
    own: torch.dtype | None = None
    remarks: tuple[str, ...] = ()


def is_answered(subject: Subject, cases: tuple[Case, ...], profile: Profile, seed: int) -> bool:
    """Call a function and its backward on the cases as they are given only; return True, if it comes to that."""
    for case in cases:
        every = tuple(name for name in subject.signature.parameters if takes_gradient(subject, case, name))
        trial = flat_trial(subject, case, Measured(wrt=every), profile, seed)
        vjp(trial.spec.function, Inputs.of(trial), seed=seed)
    return True


def look(subject: Subject, cases: tuple[Case, ...], profile: Profile, seed: int) -> Look:
    """Call a function on the cases as they are given, or else in the first dtype that it takes."""
    error, own = plain_error(subject, cases), None
    if error and (other := accepted(subject, cases)):
        own, cases = other, in_dtype(cases, other) or cases
    if error and own is None:
        measured = Measured(raised=error, refused=refused_untrained(subject, cases))
    else:
        measured = measure(subject, cases, profile, seed)
    if measured.raised and len(cases) > 1:
        alone = (case.name for case in cases if look(subject, (case,), profile, seed).measured.raised)
        measured = replace(measured, raised_on=next(alone, ""))
    remarks = tuple(of_dtypes(own, error, () if measured.raised else refused(subject, cases)))
    return Look(measured=measured, own=own, remarks=remarks)
