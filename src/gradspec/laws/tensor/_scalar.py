r"""A 0-d input gives a 0-d output and a 0-d gradient.

Why it matters: losses and temperatures are 0-d; indexing them is an error, and a result of shape [1] changes every
shape behind it.

What breaks it: `x.shape[0]`, `x.sum(dim=0)`, a result that is wrapped into shape [1].

Remedy: write for any rank, or refuse a 0-d input with a clear error.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, broken, not_applicable, raised
from gradspec.laws.tensor._call import Inputs, gradients, outputs
from gradspec.laws.tensor._compare import compare, describe
from gradspec.laws.tensor._reference import on_spec_side, reference


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not any(inputs.values[name].ndim == 0 for name in inputs.wrt):
        return not_applicable("no 0-d input in this case")
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


SCALAR = Law(
    name="scalar",
    family="inputs",
    statement=r"x \in \mathbb{R} \Rightarrow \bar{x} \in \mathbb{R}",
    check=_check,
    doc=__doc__ or "",
    specimens=("needs_a_batch_dimension",),
)
