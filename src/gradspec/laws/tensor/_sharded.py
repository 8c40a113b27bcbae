r"""On DTensors placed as the spec declares, value and gradients are those on whole tensors.

The law simulates two ranks in one process, with a private part of torch. If torch lacks that part, or if it refuses the
call, the law forks a second process and joins the two by gloo, on Linux and for tensors on a CPU. The cotangent comes
placed as the output, then replicated, then as a pending sum. If one argument is a plain tensor and the others are
DTensors, the call is right on each rank, or refused with an error.

Why it matters: a function is used inside tensor parallelism, FSDP and DTensor long after it was written; each rank
then sees only a part of each tensor.

What breaks it: `to_local()` without a look at the placement, a result that is labelled as replicated although each rank
has another part, a sum that is labelled as pending although it has been made, a cotangent taken for what this rank has.

Remedy: compute with operations that DTensor knows, and leave the placement to it; or redistribute to the placement that
the code needs before `to_local()`, and label what comes back with `from_local`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._placed_call import PlacedCall, cotangent_of, places_in
from gradspec.laws.tensor.support._ranks import PLAIN, UnsimulatedError, off_ranks, on_each_rank, placement_of
from gradspec.laws.tensor.support._real_ranks import found_on_ranks
from gradspec.spec import Placements


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not trial.spec.placements:
        return not_applicable("the spec declares no placement")
    fitting = [way for way in trial.spec.placements if places_in(inputs, way)]
    if not inputs.wrt or not fitting:
        return not_applicable("no tensor of this case can be placed as the spec declares")

    def judge(mesh: Any) -> Finding:
        findings = (judge_placements(trial, way, mesh) for way in fitting)
        return next((finding for finding in findings if finding is not HOLDS), HOLDS)

    try:
        return found_on_ranks(judge, inputs.values[inputs.wrt[0]].device.type)
    except UnsimulatedError as error:
        return Finding(status=Status.NOT_MEASURED, message=str(error))


def judge_placements(trial: Trial, way: Placements, mesh: Any) -> Finding:
    """Judge a call on DTensors of a mesh, simulated or real; all ranks of a real one make this call."""
    with off_ranks():
        call = PlacedCall.of(trial, way, mesh)
    said = ", ".join(f"`{name}` {placement}" for name, placement in call.places.items())
    y, leaves = call.forward()
    for k, (mine, right) in enumerate(zip(y, call.y, strict=True)):
        what = f"{'value' if len(y) == 1 else f'output {k}'} with {said}"
        if (finding := _compared(trial, what, on_each_rank(mine), right)) is not HOLDS:
            return finding
        if (found := placement_of(mine)) != way.output:
            return broken(f"{what} is not placed as declared", got=found, expected=way.output)
    for handed in dict.fromkeys((cotangent_of(way.output), "replicate", "partial")):
        where = f"with {said} and a cotangent {handed}"
        for name, mine in call.backward(y, leaves, (handed,) * len(y)).items():
            what = f"gradient of `{name}` {where}"
            if (finding := _compared(trial, what, on_each_rank(mine), call.gradients[name])) is not HOLDS:
                return finding
            if mine is not None and placement_of(mine) == PLAIN and name in call.places:
                return broken(f"{what} is not a DTensor", got=PLAIN, expected="a DTensor")
    mixes = (_mixed(trial, call, name) for name in (call.places if len(call.places) > 1 else ()))
    return next((finding for finding in mixes if finding is not HOLDS), HOLDS)


def _mixed(trial: Trial, call: PlacedCall, plain: str) -> Finding:
    """Leave one argument a plain tensor: where that is not refused, the call is right on each rank."""
    where = f"where only `{plain}` is a plain tensor"
    for what, mine, right in call.until_refused(plain):
        if (finding := _compared(trial, f"{what} {where}", mine, right)) is not HOLDS:
            return finding
    return HOLDS


def _compared(trial: Trial, what: str, mine: Sequence[Tensor | None], right: Tensor | None) -> Finding:
    """Compare what each rank takes for the whole of a tensor with what it is."""
    with off_ranks():
        for rank, whole in enumerate(mine):
            if (finding := compare(trial, f"{what} on rank {rank}", whole, right)) is not HOLDS:
                return finding
    return HOLDS


SHARDED = Law(
    name="sharded",
    family="transforms",
    statement=r"F_{\text{ranks}}(x) = F(x)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    needs_spec=True,
    specimens=(
        "drops_a_pending_sum",
        "drops_the_placement",
        "gathers_the_rows",
        "returns_a_plain_gradient",
        "takes_a_part_for_the_sum",
        "counts_a_pending_sum_twice",
        "mixes_tensors_silently",
    ),
)
