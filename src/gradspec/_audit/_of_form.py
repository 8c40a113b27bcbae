"""Tell a limit of torch from a mistake: try the transform on a sound function with noise in the same form."""

from __future__ import annotations

from collections.abc import Sequence

from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec._audit._trials import flat_trial
from gradspec.law import Law
from gradspec.laws import is_silent_for_form
from gradspec.profile import Profile
from gradspec.spec import Case


def silent_for_form(
    subject: Subject, case: Case, measured: Measured, laws: Sequence[Law], profile: Profile, seed: int
) -> tuple[str, ...]:
    """Return the laws that compile under which a sound function of this form gives another result silently.

    It calls the function, and compiles: ask it in a child process.
    """
    trial = flat_trial(subject, case, measured, profile, seed)
    return tuple(law.name for law in laws if law.cost == "compile" and is_silent_for_form(law, trial))
