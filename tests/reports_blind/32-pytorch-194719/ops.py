"""Operator with two outputs: its backward kernel reads the cotangents with the strides of the input."""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op


def _outputs(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return (x * weight).contiguous(), (x * x * weight).contiguous()


def _read_with_strides_of(x: Tensor, t: Tensor) -> Tensor:
    memory = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())
    at = t.storage_offset() + sum(
        torch.arange(n).view([-1 if d == e else 1 for e in range(x.ndim)]) * x.stride(d) for d, n in enumerate(x.shape)
    )
    return memory[at % len(memory)]


def _kernel(x: Tensor, weight: Tensor, grad_y: Tensor, grad_z: Tensor) -> tuple[Tensor, Tensor]:
    grad_y, grad_z = _read_with_strides_of(x, grad_y), _read_with_strides_of(x, grad_z)
    return grad_y * weight + 2 * x * grad_z * weight, (grad_y * x + grad_z * x * x).sum(0)


@custom_op("reports_blind32::scale", mutates_args=())
def scale(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return _outputs(x, weight)


@custom_op("reports_blind32::scale_mended", mutates_args=())
def scale_mended(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return _outputs(x, weight)


@custom_op("reports_blind32::scale_backward", mutates_args=())
def scale_backward(x: Tensor, weight: Tensor, grad_y: Tensor, grad_z: Tensor) -> tuple[Tensor, Tensor]:
    return _kernel(x, weight, grad_y, grad_z)


def _setup(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad_y: Tensor, grad_z: Tensor) -> tuple[Tensor, Tensor]:
    return scale_backward(*ctx.saved_tensors, grad_y, grad_z)


def _backward_mended(ctx: Any, grad_y: Tensor, grad_z: Tensor) -> tuple[Tensor, Tensor]:
    x, weight = ctx.saved_tensors
    return scale_backward(x.contiguous(), weight, grad_y.contiguous(), grad_z.contiguous())


for op in (scale, scale_mended):
    op.register_fake(lambda x, weight: (x.new_empty(x.shape), x.new_empty(x.shape)))
scale_backward.register_fake(lambda x, weight, grad_y, grad_z: (torch.empty_like(x), torch.empty_like(weight)))
scale.register_autograd(_backward, setup_context=_setup)
scale_mended.register_autograd(_backward_mended, setup_context=_setup)
