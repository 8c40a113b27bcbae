"""`gradspec::grad_factor`: the identity, whose gradient is multiplied by a factor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from gradspec.functions import GRAD_FACTOR
from gradspec.operators._registered import register
from gradspec.spec import Argument, Case, Make, Misuse, OperatorSpec, Saved


def _keep(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    ctx.factor = inputs[1]


def _backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
    return ctx.factor * grad_output, None


register(
    "grad_factor",
    "(Tensor x, float factor) -> Tensor",
    lambda x, factor: x.clone(),
    fake=lambda x, factor: x.clone(),
    backward=_backward,
    setup_context=_keep,
    vmap=lambda info, in_dims, x, factor: (torch.ops.gradspec.grad_factor(x, factor), in_dims[0]),
)


def grad_factor(x: Tensor, factor: float) -> Tensor:
    """Return a copy of `x`, through which the gradient flows back multiplied by `factor`.

    It is `gradspec.functions.grad_factor` as an operator, which `torch.export` keeps with its gradient. An operator
    returns memory of its own: it costs a copy, where the Function returns a view.

    Args:
        x: any shape, floating.
        factor: any number; negative to reverse the gradient.

    Returns:
        A new tensor: same shape, strides, dtype and device.

    Raises:
        TypeError: `x` is not a floating tensor.

    Example:
        >>> import torch
        >>> x = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> grad_factor(x, 0.1).sum().backward()
        >>> x.grad
        tensor([0.1000, 0.1000])
    """
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"grad_factor: x is {kind}, expected a floating tensor")
    return cast(Tensor, torch.ops.gradspec.grad_factor(x, factor))


def _cases(make: Make) -> Iterator[Case]:
    yield Case(name="factor 0.1", args=(make(3, 4), 0.1))
    yield Case(name="a reversed gradient", args=(make(3, 4), -1.0))
    yield Case(name="images", args=(make(2, 3, 4, 5).to(memory_format=torch.channels_last), 0.5))
    yield Case(name="transposed", args=(make(4, 3).T, 0.5))
    yield Case(name="0-d", args=(make(), 0.5))
    yield Case(name="empty", args=(make(0, 3), 0.5))
    yield Case(name="float32", args=(make(3, 4, dtype=torch.float32), 0.5))


def _misuses(make: Make) -> Iterator[Misuse]:
    for name, x in {"list for a tensor": [1.0], "integer tensor": make(3, dtype=torch.int64)}.items():
        wrong = Case(name=name, args=(x, 0.5))
        yield Misuse(case=wrong, error=TypeError, match="expected a floating tensor", call=grad_factor)


GRAD_FACTOR_OPERATOR = OperatorSpec(
    name="gradspec::grad_factor",
    operator="gradspec::grad_factor",
    primal=lambda x, factor: x,
    surrogate=lambda x, factor: factor * x,
    wrt=("x",),
    cases=_cases,
    raises=_misuses,
    supports=replace(OperatorSpec.supports, double_backward=True, vmap=True),
    arguments=(
        Argument(name="x", type="Tensor", shape="any", dtype="floating", gradient=True, text="What is returned."),
        Argument(name="factor", type="float", text="What the gradient is multiplied by."),
    ),
    saved=Saved(text="nothing", bytes=lambda x, factor: 0),
    documented=(grad_factor,),
    references=GRAD_FACTOR.references,
)
