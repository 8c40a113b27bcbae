r"""The numbers of the instance-discrimination loss and of its gradient, computed together in the forward pass.

.. math::

    L_i = \log \sum_j e^{x_i \cdot k_j / T} - \frac{x_i \cdot k_{y_i}}{T}, \qquad
    g_i = \frac{1}{T} \Bigl( \sum_j p_{ij}\, k_j - k_{y_i} \Bigr), \qquad
    p_{ij} = \operatorname{softmax}_j \frac{x_i \cdot k_j}{T}

Half types are read as they are, and computed in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._instance_discrimination._attention import HALF_TYPES, attend
from gradspec.functions._torch import without_autocast

Temperature = float | Tensor

#: A bank of so few rows has its logits in one small buffer, and no cancellation.
SMALL_BANK = 512


def plain_loss(x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature) -> Tensor:
    """Return the loss of each row in plain differentiable torch, by a buffer of B x N logits."""
    logits = x @ memory.mT / temperature
    # Not logsumexp less the own logit: of large logits that difference has lost the digits of a small loss.
    return -logits.log_softmax(-1).gather(-1, y.unsqueeze(-1)).squeeze(-1)


class LossAndGradient(Function):
    """The values of loss and gradient, by flash attention; the two Functions that use them say their derivatives.

    `x` has shape (..., B, D), `y` (..., B), and `memory` (N, D) or (..., N, D), with the same leading dimensions: one
    for each `torch.vmap`.
    """

    @staticmethod
    def forward(x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature) -> tuple[Tensor, Tensor]:
        """Return the loss, shape (..., B), and the gradient, shape (..., B, D), in the dtype of x."""
        check_instances(y, memory.shape[-2])
        if 0 in x.shape[:-1]:
            return x.new_zeros(x.shape[:-1]), torch.zeros_like(x)
        if memory.ndim > 2:
            memory = memory.expand(*x.shape[:-2], -1, -1).flatten(0, -3)
        flat = x.reshape(-1, *x.shape[-2:])
        if isinstance(temperature, Tensor) and temperature.ndim:
            temperature = temperature.expand(*x.shape[:-2], 1, 1).reshape(-1, 1, 1)
        with without_autocast(x):
            evaluate = _of_a_small_bank if memory.shape[-2] <= SMALL_BANK or 0 in x.shape else _of_a_large_bank
            loss, gradient = evaluate(working(flat), y.reshape(flat.shape[:-1]), memory, temperature)
        return loss.to(x.dtype).view(x.shape[:-1]), gradient.to(x.dtype).view(x.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        """Say that these are numbers."""
        ctx.mark_non_differentiable(*output)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[None, ...]:
        """Return nothing."""
        return None, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """Make the mapped dimension the first leading one."""

        def first(tensor: Tensor, dim: int | None) -> Tensor:
            return tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)

        leading = max(x.ndim - (in_dims[0] is not None), 2) - 2
        x, y = first(x, in_dims[0]), first(y, in_dims[1])
        if in_dims[2] is not None:
            memory = first(memory, in_dims[2])
            if memory.ndim == 3:  # one bank for all the inner leading dimensions
                memory = memory.reshape(-1, *[1] * leading, *memory.shape[-2:])
        elif memory.ndim > 2:
            memory = memory.unsqueeze(0)
        if in_dims[3] is not None:
            assert isinstance(temperature, Tensor)
            temperature = first(temperature, in_dims[3])
            if temperature.ndim == 1:
                temperature = temperature.reshape(-1, *[1] * (leading + 2))
        elif isinstance(temperature, Tensor) and temperature.ndim:
            temperature = temperature.unsqueeze(0)
        loss, gradient = LossAndGradient.apply(x, y, memory, temperature)  # type: ignore[no-untyped-call]
        return (loss, gradient), (0, 0)


def _of_a_large_bank(x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature) -> tuple[Tensor, Tensor]:
    mean, log_sum_exp = attend(x / temperature, memory)
    own = rows(memory, y).to(x.dtype)
    own_logit = (x / temperature * own).sum(-1)
    return log_sum_exp - own_logit, (mean - own) / temperature


def _of_a_small_bank(x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature) -> tuple[Tensor, Tensor]:
    memory = memory.to(x.dtype)
    logits = x @ memory.mT / temperature
    index = y.unsqueeze(-1)
    loss = logits.logsumexp(-1, keepdim=True) - logits.gather(-1, index)
    # p - 1 at y: a small gradient is not the difference of two large means.
    weights = logits.softmax(-1).scatter_add(-1, index, -torch.ones_like(loss))
    return loss.squeeze(-1), weights / temperature @ memory


def rows(memory: Tensor, y: Tensor) -> Tensor:
    """Return the rows `y` of a bank, shape (V, B, D), or of a bank each."""
    if memory.ndim == 2:
        return memory[y]
    return memory.gather(-2, y.unsqueeze(-1).expand(*y.shape, memory.shape[-1]))


def working(tensor: Tensor) -> Tensor:
    """Return a tensor in the dtype in which it is computed with."""
    return tensor.float() if tensor.dtype in HALF_TYPES else tensor


def check_instances(y: Tensor, size: int) -> None:
    """Refuse an instance that the bank does not have: at once on a CPU, on the device without a wait elsewhere.

    Raises:
        IndexError: an element of `y` is below 0 or not below `size`.
    """
    if type(y) is Tensor and y.device.type == "cpu":
        outside = y[(y < 0) | (y >= size)]
        if outside.numel():
            raise IndexError(
                f"instance_discrimination_loss: y holds {int(outside[0])}, and the bank has rows 0 to {size - 1}"
            )
        return
    message = f"instance_discrimination_loss: y is out of range, the bank has rows 0 to {size - 1}"
    torch._assert_async(((y >= 0) & (y < size)).all(), message)
