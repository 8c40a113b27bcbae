"""Why a finding is there: what an experiment on the function shows, or its numbers do on other draws too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from torch import Tensor

from gradspec.explain._asked import why_not_asked
from gradspec.explain._gradient import why_gradient
from gradspec.explain._in_single import is_nearer_in_double, why_in_a_half_type
from gradspec.explain._linearity import why_not_linear
from gradspec.explain._noise import is_of_noise
from gradspec.explain._overwritten import why_not_again, why_raised_again
from gradspec.explain._rounded import why_rounded
from gradspec.explain._second_order import why_second_order
from gradspec.explain._value import why_value
from gradspec.law import HOLDS, Finding, Law, Reason, Status, Trial
from gradspec.laws.tensor._surrogate import SURROGATE, of_function
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import in_double, is_half, is_low
from gradspec.laws.tensor.support._reference import is_audited

#: What a comparison says of its numbers without another call.
_GUESSED = ("zero", "sign", "rounding", "factor", "places", "digits", "narrow", "count")
#: What only a call in float64 shows of a function that computes in float32.
_OF_FLOAT32 = ("narrow", "digits", "rounded")
WRONG_SURROGATE = (
    "the surrogate's own derivative is not its numerical one, as `surrogate` says: nothing is said of backward"
)
#: How far the seed of other draws is from that of the finding.
_AWAY = 57


_ASKED = ContextVar("gradspec.reasons", default=True)


@contextmanager
def without_reasons() -> Iterator[None]:
    """Look for no cause for a while, where only the verdicts count."""
    token = _ASKED.set(False)
    try:
        yield
    finally:
        _ASKED.reset(token)


def are_asked() -> bool:
    """Whether causes are looked for."""
    return _ASKED.get()


def with_reason(law: Law, trial: Callable[[], Trial], finding: Finding) -> Finding:
    """Return a violation with its cause, if one is shown; of what has the digits of a float32, what rounds it."""
    found = _with_reason(law, trial, finding)
    if found.reason is None or found.reason.kind != "digits":
        return found
    rounded = quietly(lambda: why_rounded(trial()))
    return found if rounded is None else found.because(rounded)


def _with_reason(law: Law, trial: Callable[[], Trial], finding: Finding) -> Finding:
    """Return a violation with its cause; without one, where none is shown.

    Args:
        law: what is broken.
        trial: makes a new trial.
        finding: what the law found.
    """
    if finding.status is not Status.BROKEN or not are_asked():
        return finding
    if "raised" in finding.details:
        why: Reason | None = quietly(lambda: why_raised_again(trial())) if law.name == "retained_graph" else None
        return finding if why is None else finding.because(why)
    if is_of_noise(law):
        return replace(finding, reason=Reason(kind="noise", words=finding.likely, of_function=True))
    shown: Reason | None = quietly(lambda: _by_experiment(law, trial(), finding))
    if shown is not None:
        return finding.because(shown)
    if finding.reason is None or finding.reason.kind not in _GUESSED or law.cost != "ms" or law.alone:
        return finding
    again = quietly(lambda: law.check(_redrawn(trial())))
    return finding if again is not None and finding.reason.is_as(again.reason) else finding.because(None)


def _by_experiment(law: Law, trial: Trial, finding: Finding) -> Reason | None:
    if law.name == "vjp":
        return _of_the_surrogate(trial) or _of_a_gradient(law, trial)
    if law.name == "cotangent_linearity":
        return why_not_linear(trial)
    if law.name == "retained_graph":
        return why_not_again(trial)
    if law.name == "needs_input_grad":
        return why_not_asked(trial, finding)
    if law.name == "second_order":
        return why_second_order(trial, finding)
    return _why_value(trial) if law.name == "primal" else None


def _of_the_surrogate(trial: Trial) -> Reason | None:
    """Return that it is the surrogate which is wrong: a gradient that differs from its own says nothing of backward."""
    if is_audited(trial.spec):
        return None  # the surrogate is the function itself, or made of its differences
    found: Finding | None = quietly(lambda: SURROGATE.check(trial))
    is_wrong = found is not None and found.status is Status.BROKEN
    return Reason(kind="wrong surrogate", words=WRONG_SURROGATE) if is_wrong else None


def _of_a_gradient(law: Law, trial: Trial) -> Reason | None:
    """Return why a gradient is wrong: in a low precision as in float64, or by what a half type loses on the way."""
    inputs = Inputs.of(trial)
    if not is_low(inputs):
        return why_gradient(trial)
    if is_half(inputs) and quietly(lambda: is_nearer_in_double(trial, inputs)):
        own = of_function(trial, inputs).reason
        if own is not None and own.kind != "rounded at":
            return own
        return why_in_a_half_type(trial, inputs, of_values=False) or own
    wide = in_double(inputs)
    of_wide = replace(trial, case=replace(trial.case, args=wide.args(), kwargs={}))
    found: Finding | None = quietly(lambda: law.check(replace(of_wide)))
    if found is not None and found.status is Status.BROKEN:
        reason = with_reason(law, lambda: replace(of_wide), found).reason
        if reason is None or reason.kind not in _OF_FLOAT32:
            return reason or why_gradient(trial)
    # What float32 rounds in float64 no half type sees.
    return (of_function(trial, inputs).reason if is_half(inputs) else None) or why_gradient(trial)


def _why_value(trial: Trial) -> Reason | None:
    inputs = Inputs.of(trial)
    got, expected = (outputs(f(*inputs.args())) for f in (trial.spec.function, trial.spec.primal))
    for place, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if isinstance(mine, Tensor) and compare(trial, "value", mine, theirs) is not HOLDS:
            found = why_value(trial, inputs, place, theirs)
            break
    else:
        found = None
    return found or why_in_a_half_type(trial, inputs, of_values=True)


def _redrawn(trial: Trial) -> Trial:
    """Return the trial with other cotangents, and with other arguments of the same signs and sizes."""
    inputs, seed = Inputs.of(trial), trial.seed + _AWAY
    return replace(trial, case=replace(trial.case, args=inputs.redrawn(seed).args(), kwargs={}), seed=seed)
