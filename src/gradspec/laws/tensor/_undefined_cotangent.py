r"""A missing cotangent counts as zero: that of an unused output, or of one whose graph gives no gradient.

Why it matters: a loss rarely uses all outputs, and torch passes `None` to backward for the others after
`ctx.set_materialize_grads(False)`.

What breaks it: arithmetic on `None`, a backward that looks at its first cotangent only.

Remedy: test each cotangent for None, or let torch pass zeros (the default).
"""

from __future__ import annotations

from collections.abc import Mapping
from traceback import walk_tb
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.law import HOLDS, Finding, Law, Trial, broken, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, gradients, vjp
from gradspec.laws.tensor.support._compare import compare, unless_zero
from gradspec.laws.tensor.support._one_output import judge_each_output, tracked
from gradspec.laws.tensor.support._reference import reference
from gradspec.spec._gradient import gradient_of


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    leaves = inputs.leaves()
    y = tracked(trial.spec.function(*inputs.args(leaves)))
    try:
        got = gradients(tuple(_NoCotangent.apply(t) for t in y), leaves, y)  # type: ignore[no-untyped-call]
    except Exception as error:
        if not _is_of_a_node(error):
            return not_applicable("a hook of a tensor raises where there is no gradient, and is written for one")
        return raised(error, "backward without a cotangent", likely="arithmetic on a cotangent that is None")
    zeros = tuple(torch.zeros_like(t) for t in y)
    # A declared gradient may have a part without a cotangent.
    declared = vjp(reference(trial.spec), inputs, zeros) if gradient_of(trial.spec.surrogate) else {}
    of_zeros: Mapping[str, Tensor | None] | None = None
    for name, gradient in got.items():
        if gradient is None or not gradient.any():
            continue
        right = declared.get(name)
        if right is not None and compare(trial, f"gradient of `{name}`", gradient, right) is HOLDS:
            continue
        if bool(gradient.isnan().any()) and of_zeros is None:  # zero times infinity: so it is for a cotangent of zeros
            of_zeros = vjp(trial.spec.function, inputs, zeros)
        theirs = of_zeros[name] if of_zeros is not None else None
        off = gradient if theirs is None else gradient.masked_fill(gradient.isnan() & theirs.isnan(), 0)
        if bool(off.any()):
            said = f"the gradient of `{name}` without any cotangent is not zero"
            place = unless_zero(off)
            # Nothing is compared here, so that noise does not make it incomparable: the place is beside the number.
            shown = f"{place['got']}   at {place['index']}"
            return broken(said, argument=f"gradient of `{name}`", got=shown, expected=place["expected"])
    return judge_each_output(trial, inputs)


def _is_of_a_node(error: BaseException) -> bool:
    """Whether the backward of a Function or of an operator raised it, and no hook of a tensor."""
    apply = torch.autograd.function.BackwardCFunction.apply.__code__
    return any(frame.f_code is apply for frame, _ in walk_tb(error.__traceback__))


class _NoCotangent(Function):
    """The identity, through which no cotangent comes back."""

    @staticmethod
    def forward(ctx: Any, y: Tensor) -> Tensor:
        return y.clone()

    @staticmethod
    def backward(ctx: Any, y_bar: Tensor) -> None:
        return None


UNDEFINED_COTANGENT = Law(
    name="undefined_cotangent",
    family="protocol",
    statement=r"B(\varnothing) = B(0)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    implied_by=("vjp",),
)
