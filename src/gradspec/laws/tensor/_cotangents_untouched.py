r"""No bit and no version counter of a cotangent changes in backward.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: autograd hands the same cotangent to other branches of the graph; a backward that changes it changes
their gradients.

What breaks it: `cotangent.div_(T)`, `cotangent.data.mul_(mask)`, an in-place operation through numpy.

Remedy: compute out of place: `cotangent / T`.
"""

from __future__ import annotations

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Reason, Trial, broken, not_applicable
from gradspec.laws.tensor._declared_writes import why_written
from gradspec.laws.tensor.support._call import Inputs, cotangents, fresh, gradients, outputs
from gradspec.laws.tensor.support._memory import Snapshot, first_change, snapshots
from gradspec.laws.tensor.support._passes import PLAIN, Pass, called, in_each_pass

#: Where no operation of torch shows the write, as through NumPy.
IN_PLACE = Reason(
    kind="in-place write", words="an in-place operation in backward: div_(), mul_(), masked_fill_(), or through numpy()"
)


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    shapes = outputs(trial.spec.function(*inputs.args()))
    for name, drawn in cotangents(trial, shapes):
        v = tuple(map(fresh, drawn))
        tensors = {f"cotangent {k}" if k else "cotangent": t for k, t in enumerate(v)}
        before = snapshots(tensors)
        leaves = inputs.leaves()
        gradients(outputs(trial.spec.function(*inputs.args(leaves))), leaves, v, copied=False)
        if changed := first_change(before, tensors):
            place = list(tensors).index(changed.name)
            return broken(
                f"backward writes to the {changed.name} ({name}): {changed.how}",
                argument=changed.name,
                reason=why_written(trial, PLAIN, f"the cotangent of output {place}") or IN_PLACE,
                **changed.place,
            )
    return in_each_pass(trial, lambda way: HOLDS if way is PLAIN else _watch(trial, inputs, way))


def _watch(trial: Trial, inputs: Inputs, way: Pass) -> Finding:
    leaves = way.leaves(inputs)
    handed, before = dict[str, Tensor](), dict[str, Snapshot]()
    for order in way.orders(called(trial, way, inputs, leaves), leaves, trial.seed):
        handed |= {f"the cotangent of {name}": v for name, v in order.cotangents.items()}
        before |= snapshots({name: t for name, t in handed.items() if name not in before})
    if changed := first_change(before, handed):
        said = f"backward writes to {changed.name}: {changed.how}"
        reason = why_written(trial, way, changed.name) or IN_PLACE
        return broken(said, argument=changed.name, reason=reason, **changed.place)
    return HOLDS


COTANGENTS_UNTOUCHED = Law(
    name="cotangents_untouched",
    family="effects",
    statement=r"\bar{y}_{\text{after}} = \bar{y}_{\text{before}}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
