"""Causes that replace a finding of any law: uninitialised memory, or a NaN that no value explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gradspec.explain._gradient import why_gradient
from gradspec.explain._undefined import undefined, undefined_in_single
from gradspec.law import Finding, Law, Rank, Reason, Trial
from gradspec.laws import quietly
from gradspec.laws.tensor._uninitialized_memory import unwritten

#: The laws that compare derivatives along a direction, or with zero: no element is the worst one.
_OF_NO_ELEMENT = ("surrogate", "adjoint", "second_order", "undefined_cotangent", "autocast", "precision")
#: Those that ask in a lower precision than that of the case.
_OF_LOWER_PRECISION = ("autocast", "precision")
_SILENT = ("", Rank.WRONG)


def instead_of(law: Law, trial: Callable[[], Trial], finding: Finding) -> Finding | None:
    """Return what is wrong with a function whatever a law says of it; None where nothing is.

    Args:
        law: what is broken, or cannot tell.
        trial: makes a new trial.
        finding: what the law found.
    """
    is_of_numbers = bool(finding.index) or law.name in _OF_NO_ELEMENT
    if not is_of_numbers or not finding.is_failure or "raised" in finding.details or finding.rank not in _SILENT:
        return None
    in_single = (undefined_in_single,) if finding.got == "nan" and law.name in _OF_LOWER_PRECISION else ()
    for ask in (unwritten, undefined, *in_single):
        found: Finding | None = quietly(partial(ask, trial()))
        if found is not None:
            return _at_a_kink(law, trial(), found)
    return None


def _at_a_kink(law: Law, trial: Trial, found: Finding) -> Finding:
    """Return a finding that says of a gradient whether it is right a little aside, beside what makes it so."""
    kink: Reason | None = quietly(lambda: why_gradient(trial)) if law.name == "vjp" else None
    if found.reason is None or kink is None or kink.kind != "kink":
        return found
    words = "; ".join(filter(None, (kink.words, found.reason.words)))
    return found.because(replace(found.reason, words=words))
