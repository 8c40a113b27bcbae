r"""A zero-size input gives a zero-size gradient and no error.

Why it matters: the last batch of an epoch, an image without a detection, an expert without a token.

What breaks it: a reduction over nothing, a reshape with -1, a kernel launched over no block.

Remedy: return early for a zero-size input.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, broken, not_applicable, raised
from gradspec.laws.tensor._call import Inputs, gradients, outputs
from gradspec.laws.tensor._compare import compare, describe
from gradspec.laws.tensor._reference import on_spec_side, reference


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not any(inputs.values[name].numel() == 0 for name in inputs.wrt):
        return not_applicable("no zero-size input in this case")
    expected = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    leaves, twins = inputs.leaves(), inputs.leaves()
    try:
        y = outputs(trial.spec.function(*inputs.args(leaves)))
        ones = tuple(t.new_ones(()).expand(t.shape) for t in y)
        got = gradients(y, leaves, ones)
    except Exception as error:
        return raised(error)
    for mine, theirs in zip(y, expected, strict=True):
        if (finding := compare(trial, "value", mine, theirs)) is not HOLDS:
            return finding
    right = gradients(outputs(reference(trial.spec)(*inputs.args(twins))), twins, ones)
    for name, leaf in leaves.items():
        mine = got[name]
        if mine is not None and describe(mine) != describe(leaf):
            return broken(f"the gradient of `{name}` has another shape", got=describe(mine), expected=describe(leaf))
        if mine is None and right[name] is not None:
            return broken(f"no gradient flows to `{name}`", got="None", expected=describe(leaf))
        if (finding := compare(trial, f"gradient of `{name}`", mine, right[name])) is not HOLDS:
            return finding
    return HOLDS


EMPTY = Law(
    name="empty",
    family="inputs",
    statement=r"|x| = 0 \Rightarrow |\bar{x}| = 0",
    check=_check,
    doc=__doc__ or "",
    specimens=("crashes_on_an_empty_batch",),
)
