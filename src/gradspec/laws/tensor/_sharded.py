r"""On DTensors placed as the spec declares, value and gradients are those on whole tensors.

The law simulates two ranks in one process, with a private part of torch. If torch lacks that part, or if a call raises
there, the law forks a second process and joins the two by gloo, on Linux and for tensors on a CPU. The cotangent comes
placed as the output and, if that is a DTensor, also replicated and as a pending sum. If one argument is a plain tensor
and the others are DTensors, or only one is a DTensor, the call is right on each rank, or refused with an error.

`gradspec audit --sharded` has no declaration: it shares the rows of all arguments that have the batch dimension of the
output, then those of each argument by itself, with the others replicated. A wrong result is `broken`, a call that
raises is `not_promised`.

Why it matters: a function is used inside tensor parallelism, FSDP and DTensor long after it was written; each rank
then sees only a part of each tensor.

What breaks it: `to_local()` without a look at the placement, a result that is labelled as replicated although each rank
has another part, a sum that is labelled as pending although it has been made, a cotangent taken for what this rank has.

Remedy: compute with operations that DTensor knows, and leave the placement to it; or redistribute to the placement that
the code needs before `to_local()`, and label what comes back with `from_local`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, SpecFaultError, StandInError
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._placed_call import PlacedCall, cotangent_of, places_in
from gradspec.laws.tensor.support._ranks import (
    PLAIN,
    UnsimulatedError,
    is_of_simulation,
    off_ranks,
    on_each_rank,
    placement_of,
    refuse,
)
from gradspec.laws.tensor.support._real_ranks import found_on_ranks
from gradspec.spec import Placements


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not trial.spec.placements:
        return not_applicable("the spec declares no placement")
    fitting = [way for way in trial.spec.placements if places_in(inputs, way)]
    if not inputs.wrt or not fitting:
        return not_applicable("no tensor of this case can be placed as the spec declares")

    try:
        device_type = inputs.values[inputs.wrt[0]].device.type
        return found_on_ranks(lambda mesh: judge_ways(trial, fitting, mesh), device_type)
    except UnsimulatedError as error:
        return Finding(status=Status.NOT_MEASURED, message=str(error))


def judge_ways(trial: Trial, ways: Sequence[Placements], mesh: Any) -> Finding:
    """Judge a call in each of the ways, and say of a wrong one before one that raises."""
    refusal: Exception | None = None
    where = ""
    for way in ways:
        try:
            if (finding := judge_placements(trial, way, mesh)) is not HOLDS:
                return finding
        except (SpecFaultError, StandInError):
            raise
        except Exception as error:
            if is_of_simulation(error):
                raise
            refuse(error)
            if refusal is None:
                refusal, where = error, "" if way is ways[0] else _said(places_in(Inputs.of(trial), way))
    if refusal is None:
        return HOLDS
    if where:
        return raised(refusal, f"the call with {where}")
    raise refusal


def judge_placements(trial: Trial, way: Placements, mesh: Any) -> Finding:
    """Judge a call on DTensors of a mesh, simulated or real; all ranks of a real one make this call."""
    with off_ranks():
        call = PlacedCall.of(trial, way, mesh)
    said, declared = _said(call.places), PLAIN if way.output == "plain" else way.output
    y, leaves = call.forward()
    for k, (mine, right) in enumerate(zip(y, call.y, strict=True)):
        what = f"{'value' if len(y) == 1 else f'output {k}'} with {said}"
        if (finding := _compared(trial, what, on_each_rank(mine), right)) is not HOLDS:
            return finding
        if (found := placement_of(mine)) != declared and declared != "any":
            return broken(f"{what} is not placed as declared", got=found, expected=declared)
    for handed in _cotangents(y):
        where = f"with {said}" if PLAIN in handed else f"with {said} and a cotangent {', '.join(dict.fromkeys(handed))}"
        for name, mine in call.backward(y, leaves, handed).items():
            what = f"gradient of `{name}` {where}"
            meant = call.gradients[name]
            if (finding := _compared(trial, what, on_each_rank(mine), meant, is_derivative=True)) is not HOLDS:
                return finding
            if mine is not None and placement_of(mine) == PLAIN and name in call.places:
                return broken(f"{what} is not a DTensor", got=PLAIN, expected="a DTensor")
    mixes = (_mixed(trial, call, plain) for plain in _plain_ones(list(call.places)))
    return next((finding for finding in mixes if finding is not HOLDS), HOLDS)


def _said(places: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {placement}" for name, placement in places.items())


def _cotangents(y: Sequence[Any]) -> Iterator[tuple[str, ...]]:
    """Yield how the cotangents are placed: as the outputs; and, of DTensors, in two other ways."""
    own = tuple(cotangent_of(placement_of(t)) for t in y)
    others = [] if PLAIN in own else [(word,) * len(own) for word in ("replicate", "partial")]
    yield from dict.fromkeys((own, *others))


def _plain_ones(names: list[str]) -> Iterator[list[str]]:
    """Yield which arguments stay plain tensors: one of them, then all but one."""
    if len(names) > 1:
        yield from ([name] for name in names)
    if len(names) > 2:
        yield from ([other for other in names if other != name] for name in names)


def _mixed(trial: Trial, call: PlacedCall, plain: list[str]) -> Finding:
    """Leave some arguments plain tensors: where that is not refused, the call is right on each rank."""
    names = ", ".join(f"`{name}`" for name in plain)
    where = f"where only {names} {'is a plain tensor' if len(plain) == 1 else 'are plain tensors'}"
    for what, mine, right, is_derivative in call.until_refused(plain):
        if (finding := _compared(trial, f"{what} {where}", mine, right, is_derivative=is_derivative)) is not HOLDS:
            return finding
    return HOLDS


def _compared(
    trial: Trial, what: str, mine: Sequence[Tensor | None], right: Tensor | None, *, is_derivative: bool = False
) -> Finding:
    """Compare what each rank takes for the whole of a tensor with what it is."""
    with off_ranks():
        for rank, whole in enumerate(mine):
            if (
                finding := compare(trial, f"{what} on rank {rank}", whole, right, is_derivative=is_derivative)
            ) is not HOLDS:
                return finding
    return HOLDS


SHARDED = Law(
    name="sharded",
    family="transforms",
    scope=Scope.DISTRIBUTED,
    statement=r"F_{\text{ranks}}(x) = F(x)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    needs_spec=True,
)
