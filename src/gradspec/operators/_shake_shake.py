"""`gradspec::shake_shake`: a mixture of two branches, whose gradient is mixed by another weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from gradspec.functions import SHAKE_SHAKE
from gradspec.functions._shake_shake._mix import mix
from gradspec.functions._shake_shake._noise import check_branches, checked_weights
from gradspec.operators._registered import register
from gradspec.spec import Case, Make, Misuse, OperatorSpec, Saved


def _kernel(x1: Tensor, x2: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    return mix(x1, x2, alpha).contiguous()


def _fake(x1: Tensor, x2: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    return x1.new_empty(x1.shape)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[3])


def _backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
    (beta,) = ctx.saved_tensors
    grad_x1 = beta * grad_output if ctx.needs_input_grad[0] else None
    grad_x2 = (1 - beta) * grad_output if ctx.needs_input_grad[1] else None
    return grad_x1, grad_x2, None, None


def _vmap(info: Any, in_dims: tuple[int | None, ...], *tensors: Tensor) -> tuple[Tensor, int]:
    """Put the batch first, and a dimension of one behind it for each that a weight lacks of the branches."""
    front = [
        t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip(tensors, in_dims, strict=True)
    ]
    rank = front[0].ndim
    return torch.ops.gradspec.shake_shake(*(t.reshape(len(t), *[1] * (rank - t.ndim), *t.shape[1:]) for t in front)), 0


register(
    "shake_shake",
    "(Tensor x1, Tensor x2, Tensor alpha, Tensor beta) -> Tensor",
    _kernel,
    fake=_fake,
    backward=_backward,
    setup_context=_keep,
    vmap=_vmap,
)


def shake_shake(x1: Tensor, x2: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Mix two branches by `alpha`, and their gradients by `beta`.

    It is `gradspec.functions.mix_branches` as an operator, which `torch.export` keeps with its gradient.

    Args:
        x1: any shape, floating.
        x2: shape, dtype and device of `x1`.
        alpha: how much of the first branch, `x1`, the output takes; dtype of `x1`, broadcasts to its shape. No gradient
            flows to it.
        beta: how much of the cotangent the first branch gets; as `alpha`.

    Returns:
        A new tensor in contiguous memory: same shape, dtype and device as `x1`.

    Raises:
        TypeError: a branch is not floating, or is not a tensor; a weight is not real, or is neither a float nor a
            tensor.
        ValueError: shapes, dtypes or devices differ; a weight requires grad, or does not broadcast.

    Example:
        >>> import torch
        >>> x1 = torch.tensor([[1.0, 2.0]], requires_grad=True)
        >>> x2 = torch.tensor([[3.0, 6.0]], requires_grad=True)
        >>> y = shake_shake(x1, x2, torch.tensor(0.75), torch.tensor(0.25))
        >>> y.tolist()
        [[1.5, 3.0]]
        >>> y.sum().backward()
        >>> x1.grad, x2.grad
        (tensor([[0.2500, 0.2500]]), tensor([[0.7500, 0.7500]]))
    """
    check_branches(x1, x2, call="shake_shake")
    weights = checked_weights(x1, (alpha, beta), call="shake_shake")
    return cast(Tensor, torch.ops.gradspec.shake_shake(x1, x2, *weights))


#: Those of the function that say something else of an operator.
_CASES = (
    "rows",
    "channels-last images",
    "transposed branch",
    "0-d weights",
    "all from the first branch, gradient to the second",
    "all from the second branch, gradient to the first",
    "float32 branches",
    "empty batch",
)


def _cases(make: Make) -> Iterator[Case]:
    for case in SHAKE_SHAKE.cases(make):
        if case.name in _CASES:
            x1, *others = case.args
            tensors = (x1.new_tensor(value) if isinstance(value, float) else value for value in others)
            yield replace(case, args=(x1, *tensors))


def _misuses(make: Make) -> Iterator[Misuse]:
    assert SHAKE_SHAKE.raises is not None
    for misuse in SHAKE_SHAKE.raises(make):
        if misuse.call is None:
            yield replace(misuse, call=shake_shake)


SHAKE_SHAKE_OPERATOR = OperatorSpec(
    name="gradspec::shake_shake",
    operator="gradspec::shake_shake",
    primal=SHAKE_SHAKE.primal,
    surrogate=SHAKE_SHAKE.surrogate,
    wrt=("x1", "x2"),
    cases=_cases,
    raises=_misuses,
    supports=replace(OperatorSpec.supports, double_backward=True, vmap=True),
    arguments=tuple(
        argument if argument.gradient else replace(argument, type="Tensor", dtype="same as x1")
        for argument in SHAKE_SHAKE.arguments
    ),
    saved=Saved(text="nothing", bytes=lambda x1, x2, alpha, beta: 0),
    documented=(shake_shake,),
    references=SHAKE_SHAKE.references,
)
