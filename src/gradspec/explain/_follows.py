"""Whether a violation follows from another one: the law is asked again of the function with that one mended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gradspec.explain._mended import by_itself, is_of_torch, with_right_backward, with_right_tangent, with_right_value
from gradspec.law import Finding, Law, Rank, Status, Trial, raised
from gradspec.laws import is_stand_in, quietly
from gradspec.laws.tensor._adjoint import ADJOINT

#: Makes a new trial of the check, whose tensors are its own.
NewTrial = Callable[[], Trial]
#: What a law says of a function to which nothing is left to object.
SETTLED = (Status.HOLDS, Status.NOT_APPLICABLE)
#: The laws that compare a derivative of the function with the reference's, and say nothing of it by itself.
_DERIVATIVES = ("vjp", "jvp")


@dataclass(frozen=True)
class Explained:
    """A finding after those that follow from other laws are removed."""

    finding: Finding
    #: The law from whose violation it follows; None where it is a finding of its own.
    root: Law | None = None
    #: Makes the trial in which it is so, where that is another one than was asked.
    trial: NewTrial | None = None


def beside_others(
    law: Law, roots: Sequence[Law], trial: NewTrial, prior: Mapping[str, Status], finding: Finding
) -> Explained:
    """Return a finding with the law from whose violation it follows, or what is left of it without that one.

    It follows where it holds for the function with the other violation mended, each by itself, or else all of them.
    Where it is broken there otherwise, that is left: it says nothing of the other violation again. Where the other
    law finds the function at odds with itself too, it gives another result each time, and nothing else can be told.

    Args:
        law: what is broken.
        roots: the laws from whose violation it may follow.
        trial: makes a new trial.
        prior: the statuses of this case under the laws that ran before.
        finding: what the law found.
    """
    spec = trial().spec
    if is_stand_in(spec.primal) and is_stand_in(spec.surrogate):
        return Explained(finding)  # an audit: nothing but the function itself says what is right
    failing = [root for root in roots if _fails(law, root, trial, prior, finding)]
    if said := finding.details.get("raised"):
        for root in failing:
            if found_by(root, trial).details.get("raised") == said:
                return Explained(finding, root)
    required = [root for root in failing if root.name in law.requires]
    left = _beside_required(law, required, trial, finding) if required else Explained(finding)
    if left.root is not None:
        return left
    for root in failing:
        if root.name in law.implied_by and not said and _is_implied(law, root, trial):
            return Explained(finding, root)
    odd = next((root for root in failing if _is_at_odds(root, trial)), None)
    return left if odd is None or left.finding is not finding else Explained(finding, odd)


def _beside_required(law: Law, failing: Sequence[Law], trial: NewTrial, finding: Finding) -> Explained:
    if law.name in _DERIVATIVES and "raised" not in finding.details:
        return Explained(finding, next((root for root in failing if _is_mended(law, root, trial)), None))
    if len(failing) > 1:
        for root in failing:
            of_root = _asked_of_itself(law, trial, value=root.name == "primal", gradient=root.name == "vjp")
            if of_root.status in SETTLED:
                return Explained(finding, root)
    return _by_value(law, failing, trial, finding) or _by_itself(law, failing, trial, finding)


def _by_value(law: Law, failing: Sequence[Law], trial: NewTrial, finding: Finding) -> Explained | None:
    """Return a finding on gradients that follows from the value: both hold once backward gets the right one."""
    of = {root.name: root for root in failing}
    if not {"primal", "vjp"} <= of.keys() or "raised" in finding.details:
        return None
    mended = quietly(lambda: with_right_value(trial()))
    settled = mended is not None and all(found_by(one, lambda: mended).status in SETTLED for one in (of["vjp"], law))
    return Explained(finding, of["primal"]) if settled else None


def found_by(law: Law, trial: NewTrial) -> Finding:
    """Return what a law finds in the case, by itself."""
    try:
        return law.check(trial())
    except (Exception, SystemExit) as error:
        return raised(error)


def _fails(law: Law, root: Law, trial: NewTrial, prior: Mapping[str, Status], finding: Finding) -> bool:
    # What was called before decides what another law would find now: only what it has said counts then.
    unsaid = Status.HOLDS if law.alone else Status.BROKEN
    if "raised" not in finding.details and root.name not in (*law.requires, *law.implied_by):
        return False
    return prior.get(root.name, unsaid) is Status.BROKEN and found_by(root, trial).status is Status.BROKEN


def _is_implied(law: Law, root: Law, trial: NewTrial) -> bool:
    """Whether a law holds with the right result of the root; of laws that ask the same of a call, none is mended."""
    mends = {"vjp": with_right_backward, "jvp": with_right_tangent}
    if root.name not in mends:
        return True
    return found_by(law, lambda: mends[root.name](trial())).status in SETTLED


def _is_mended(law: Law, root: Law, trial: NewTrial) -> bool:
    """Whether a derivative is right once forward is; one that torch made of forward is mended with it."""
    if law.name == "vjp":
        mended = quietly(lambda: with_right_value(trial()))
    elif root.name == "vjp":
        # Forward mode and backward are one derivative where they are adjoint: both are mended at once, or neither.
        return found_by(ADJOINT, trial).status is Status.HOLDS
    else:
        mended = by_itself(trial(), gradient=bool(quietly(lambda: is_of_torch(trial()))))
    return mended is not None and found_by(law, lambda: mended).status in SETTLED


def _asked_of_itself(law: Law, trial: NewTrial, *, value: bool, gradient: bool) -> Finding:
    return found_by(law, lambda: by_itself(trial(), value=value, gradient=gradient))


def _by_itself(law: Law, failing: Sequence[Law], trial: NewTrial, finding: Finding) -> Explained:
    """Return what is left of a finding of the function by itself, value and gradient."""
    own = _asked_of_itself(law, trial, value=True, gradient=True)
    if own.status in SETTLED:
        return Explained(finding, failing[0])
    if own.rank == Rank.WASTE:
        return Explained(own)
    if _is_same(own, finding):
        return Explained(finding)
    if any(_is_at_odds(root, trial) for root in failing):
        return Explained(finding)
    is_left = own.status is Status.BROKEN and "raised" not in finding.details
    return Explained(own if is_left else finding)


def _is_same(one: Finding, other: Finding) -> bool:
    """Whether two findings of a law have the same numbers in the same place."""
    return _numbers(one) == _numbers(other)


def _numbers(finding: Finding) -> tuple[object, ...]:
    return finding.status, finding.index, finding.got, finding.expected, finding.details.get("raised")


def _is_at_odds(law: Law, trial: NewTrial) -> bool:
    """Whether a law that compares two calls finds that the function differs from itself."""
    found = found_by(law, lambda: by_itself(trial()))
    return found.status is Status.BROKEN and "raised" not in found.details
