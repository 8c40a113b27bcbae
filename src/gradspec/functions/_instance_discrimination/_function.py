"""The loss of instance discrimination against a memory bank, without a buffer of logits."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._instance_discrimination._checks import CALL, checked_embeddings
from gradspec.functions._instance_discrimination._gradient import LossGradient
from gradspec.functions._linear_cross_entropy._checks import check_reduction, checked_temperature
from gradspec.functions._linear_cross_entropy._logits import Point, Temperature
from gradspec.functions._linear_cross_entropy._plain import plain_loss
from gradspec.functions._linear_cross_entropy._shard_loss import sharded_loss
from gradspec.functions._linear_cross_entropy._values import values
from gradspec.functions._sharded import is_dtensor
from gradspec.functions._torch import allow_in_graph, apply_function, keep_signature


def bank_point(x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature) -> Point:
    """Return the call as a linear cross-entropy: a weight without a gradient, with every row counted."""
    return Point(x, memory, y, None, None, temperature, None, 0.0)


def bank_loss(x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature) -> Tensor:
    """Return the loss of each row in plain differentiable torch, by a buffer of B x N logits."""
    return plain_loss(x, memory, y, temperature=temperature)


@allow_in_graph
@keep_signature
class InstanceDiscriminationLoss(Function):
    r"""Classify each embedding as its own instance, among all the rows of a memory bank: the full-softmax loss.

    .. math::

        L_i = \log \sum_{j=1}^{N} e^{x_i \cdot k_j / T} - \frac{x_i \cdot k_{y_i}}{T}, \qquad
        \bar{x}_i = \frac{\bar{L}_i}{T} \Bigl( \sum_{j=1}^{N} p_{ij}\, k_j - k_{y_i} \Bigr), \qquad
        p_{ij} = \operatorname{softmax}_j \frac{x_i \cdot k_j}{T}

    It is the cross-entropy of the logits `x @ memory.T / T`, and attention with the bank as keys and as values. So
    flash attention gives the loss and its gradient in one forward pass, in two matrix products, with memory that does
    not grow with the bank. The backward pass multiplies the kept gradient, shape (B, D), by the cotangent.

    Forward mode, and differentiating twice, take a slower path: four more products in plain torch, a chunk of the bank
    at a time. They read the bank again; a double backward raises if the bank has moved in between. While
    `torch.export` traces, the logits are computed in plain torch, with a buffer of B x N.

    Example:
        >>> import torch
        >>> memory = torch.eye(4)
        >>> x = torch.tensor([[0.0, 1.0, 0.0, 0.0]], requires_grad=True)
        >>> loss = InstanceDiscriminationLoss.apply(x, torch.tensor([1]), memory, 0.5)
        >>> loss  # log(e^2 + 3) - 2
        tensor([0.3408], grad_fn=<InstanceDiscriminationLossBackward>)
        >>> loss.sum().backward()
        >>> x.grad  # (softmax - one-hot) / 0.5
        tensor([[ 0.1925, -0.5775,  0.1925,  0.1925]])

    References:
        `Unsupervised Feature Learning via Non-Parametric Instance Discrimination <https://arxiv.org/abs/1805.01978>`_,
        Wu, Xiong, Yu and Lin, 2018, equations 2 and 3. `FlashAttention <https://arxiv.org/abs/2205.14135>`_, Dao, Fu,
        Ermon, Rudra and Ré, 2022.
    """

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature, *numbers: Tensor) -> Tensor:
        """Return the loss of each row of `x`.

        Args:
            x: shape (B, D), floating: the embeddings, used as they are given, not normalised.
            y: shape (B,), int64: the row of the bank that each embedding is an instance of, from 0 to N - 1.
            memory: shape (N, D), dtype and device of `x`: the bank. No gradient flows to it.
            temperature: a float above 0, or a 0-d tensor, whose value is not checked. No gradient flows to it.
            numbers: none; the loss and its gradient, once they are computed: torch calls `apply` again inside each
                `torch.func` transform.

        Returns:
            Shape (B,), dtype and device of `x`; under autocast, the dtype of the bank.

        Raises:
            TypeError: one is not a tensor, the embeddings are not floating, the bank is of another dtype, `y` is not
                int64, or the temperature is not floating, or neither a float nor a 0-d tensor.
            ValueError: shapes, numbers of features or devices do not fit, the bank has no row, the temperature is not
                above 0, or the bank or the temperature is differentiated.
            IndexError: `y` is not a row of the bank. On another device than a CPU, and in a
                compiled region, torch raises a RuntimeError when the kernel runs.
        """
        if not numbers:
            temperature = checked_temperature(CALL, temperature)
            x = checked_embeddings(x, y, memory)
            if torch.compiler.is_exporting():
                return bank_loss(x, y, memory, temperature)
            found = values(bank_point(x.detach(), y, memory, temperature))
            numbers = found.loss, apply_function(LossGradient, x, memory, temperature, found.gradient)
        return cast(Tensor, super().apply(x, y, memory, temperature, *numbers))  # type: ignore[no-untyped-call]

    @staticmethod
    def forward(
        x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature, loss: Tensor, gradient: Tensor
    ) -> Tensor:
        """Return the loss, which flash attention gave with its gradient; torch calls it, users call `apply`."""
        return loss.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep the gradient."""
        ctx.save_for_backward(inputs[-1])
        ctx.save_for_forward(inputs[-1])

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        """Return the gradient of each row times its cotangent for `x`, and nothing for the others."""
        (gradient,) = ctx.saved_tensors
        return grad_output.unsqueeze(-1) * gradient, None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Tensor:
        """Return the gradient of each row along its tangent."""
        (gradient,) = ctx.saved_tensors
        return cast(Tensor, (gradient * grad_inputs[0]).sum(-1))


def instance_discrimination_loss(
    x: Tensor, y: Tensor, memory: Tensor, temperature: Temperature, *, reduction: str = "mean"
) -> Tensor:
    """Return the cross-entropy of embeddings against all the rows of a memory bank, without a buffer of B x N.

    Args:
        x: shape (B, D), floating: the embeddings, used as they are given, not normalised.
        y: shape (B,), int64: the row of the bank that each embedding is an instance of, from 0 to N - 1.
        memory: shape (N, D), dtype and device of `x`: the bank. No gradient flows to it. Or a DTensor, placed as
            `Shard(0)`: each rank gives a batch of its own, and gets the losses of that batch against the whole bank.
        temperature: a float above 0, or a 0-d tensor, whose value is not checked. No gradient flows to it.
        reduction: "mean", "sum" or "none": over the batch. The mean over an empty batch is NaN, as that of
            `torch.nn.functional.cross_entropy` is. Of a sharded bank, "mean" divides by the rows of an average rank:
            the mean over the ranks is the loss of one process on the rows of all.

    Returns:
        Shape (), or (B,) with `reduction="none"`; dtype and device of `x`; under autocast, the dtype of the bank.

    Raises:
        TypeError: one is not a tensor, the embeddings are not floating, the bank is of another dtype, `y` is not int64,
            or the temperature is not floating, or neither a float nor a 0-d tensor.
        ValueError: shapes, numbers of features or devices do not fit, the bank has no row, the temperature is not
            above 0, the bank or the temperature is differentiated, or the reduction is not one of its choices.
        IndexError: `y` is not a row of the bank.
        RuntimeError: the ranks of a mesh cannot make the call together. One of them refuses it or makes a different
            one, or it is under a transform of `torch.func`, in forward mode, or differentiated twice.

    Example:
        >>> import torch
        >>> import torch.nn.functional as F
        >>> x, memory = torch.randn(8, 16), torch.randn(1000, 16)
        >>> y = torch.arange(8)
        >>> loss = instance_discrimination_loss(x, y, memory, 0.5)
        >>> torch.testing.assert_close(loss, F.cross_entropy(x @ memory.T / 0.5, y))
    """
    check_reduction(CALL, reduction)
    if is_dtensor(memory):

        def check(shard: Tensor, _: None) -> Point:
            fixed = checked_temperature(CALL, temperature)
            return bank_point(checked_embeddings(x, y, shard, whole=False), y, shard, fixed)

        return sharded_loss(CALL, ("y", "bank"), (x, y, memory, None), check, reduction)
    loss = InstanceDiscriminationLoss.apply(x, y, memory, temperature)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()
