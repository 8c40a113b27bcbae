"""The cross-entropy of a linear layer, without its logits."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._linear_cross_entropy._checks import checked_call
from gradspec.functions._linear_cross_entropy._gradients import PLACES, Kept, gradients
from gradspec.functions._linear_cross_entropy._logits import Point, Tangent, Temperature
from gradspec.functions._linear_cross_entropy._plain import plain_loss
from gradspec.functions._linear_cross_entropy._second_order import directional
from gradspec.functions._linear_cross_entropy._values import Numbers, values
from gradspec.functions._torch import allow_in_graph, keep_signature


@allow_in_graph
@keep_signature
class LinearCrossEntropy(Function):
    r"""Classify each row by a linear layer: the cross-entropy of its logits, without a buffer of all of them.

    .. math::

        z_{ij} = \frac{x_i \cdot w_j + b_j - m_i\,[j = y_i]}{T}, \qquad
        L_i = \log \sum_{j=1}^{N} e^{z_{ij}} - \sum_{j=1}^{N} q_{ij}\, z_{ij}, \qquad
        q_{ij} = (1 - \varepsilon)\,[j = y_i] + \frac{\varepsilon}{N}

    .. math::

        r_{ij} = \frac{\bar{L}_i}{T} (p_{ij} - q_{ij}), \qquad
        \bar{x}_i = \sum_j r_{ij}\, w_j, \qquad
        \bar{w}_j = \sum_i r_{ij}\, x_i, \qquad
        \bar{b}_j = \sum_i r_{ij}, \qquad
        \bar{m}_i = -r_{i y_i}

    The forward pass is attention with the rows of the weight as keys and as values: flash attention gives the loss and
    its derivative by `x` in two matrix products. The backward pass multiplies that by the cotangent; only if `weight`
    or `bias` needs a gradient, it computes the logits again, a few rows of the weight at a time, in two products more.
    At most 2**22 logits are not computed again: the forward pass keeps the derivative of the loss by them, and one
    product is left to do.

    Forward mode, and differentiating twice, take a slower path in plain torch, a few rows of the weight at a time.
    While `torch.export` traces, the logits are computed in plain torch, with a buffer of B x N.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 2.0]], requires_grad=True)
        >>> weight = torch.eye(2, requires_grad=True)
        >>> loss = LinearCrossEntropy.apply(x, weight, torch.tensor([1]))
        >>> loss  # log(1 + e) - 1
        tensor([0.3133], grad_fn=<LinearCrossEntropyBackward>)
        >>> loss.sum().backward()
        >>> x.grad, weight.grad  # (softmax - one-hot), and its outer product with x
        (tensor([[ 0.2689, -0.2689]]), tensor([[ 0.2689,  0.5379],
                [-0.2689, -0.5379]]))

    References:
        `Cut Your Losses in Large-Vocabulary Language Models <https://arxiv.org/abs/2411.09009>`_, Wijmans, Huval,
        Hertzberg, Koltun and Krähenbühl, 2024, section 4. `FlashAttention <https://arxiv.org/abs/2205.14135>`_, Dao,
        Fu, Ermon, Rudra and Ré, 2022.
    """

    generate_vmap_rule = True

    @classmethod
    def apply(
        cls,
        x: Tensor,
        weight: Tensor,
        target: Tensor,
        bias: Tensor | None = None,
        margin: Tensor | float | None = None,
        temperature: Temperature = 1.0,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        *numbers: Tensor,
    ) -> Tensor:
        """Return the loss of each row of `x`.

        Args:
            x: shape (B, D), floating.
            weight: shape (N, D), dtype and device of `x`: a row for each class.
            target: shape (B,), int64: the class of each row, from 0 to N - 1, or `ignore_index`.
            bias: shape (N,), dtype and device of `x`.
            margin: a number, or shape (B,), dtype and device of `x`: what is taken from the product of each row with
                its own class, before the temperature.
            temperature: a float above 0, or a 0-d tensor, whose value is not checked. No gradient flows to it.
            ignore_index: rows of this target have a loss of 0 and no gradient.
            label_smoothing: from 0 to 1: the share of the target that is spread evenly over all classes.
            numbers: none; what the forward pass gave: torch calls `apply` again inside each `torch.func` transform.

        Returns:
            Shape (B,), dtype and device of `x`; under autocast, the dtype of the weight.

        Raises:
            TypeError: one is not a tensor, the rows are not floating, the weight is of another dtype, the bias is of
                another dtype, `target` is not int64, the margin is neither a number nor a tensor, the temperature is
                not floating, or neither a float nor a 0-d tensor, the label smoothing is not a float, or the ignored
                class not an int.
            ValueError: shapes, numbers of features or devices do not fit, the bias or the margin is of another size,
                the weight has no row, the temperature is not above 0 or is differentiated, or the label smoothing is
                not in 0 to 1.
            IndexError: `target` is not a row of the weight. On another device than a CPU, and in a
                compiled region, torch raises a RuntimeError when the kernel runs.
        """
        if not numbers:
            point = checked_call(x, weight, target, bias, margin, temperature, ignore_index, label_smoothing)
            if torch.compiler.is_exporting():
                return plain_loss(*point)  # type: ignore[arg-type]  # its ignore_index is the int that was given
            x, weight, target, bias, margin, temperature, ignore_index, label_smoothing = point  # type: ignore[assignment]
            of_class = weight.requires_grad or (bias is not None and bias.requires_grad)
            numbers = values(point.detached(), keep=of_class and torch.is_grad_enabled())
        arguments = (x, weight, target, bias, margin, temperature, ignore_index, label_smoothing)
        return cast(Tensor, super().apply(*arguments, *numbers))  # type: ignore[no-untyped-call]

    @staticmethod
    def forward(
        x: Tensor,
        weight: Tensor,
        target: Tensor,
        bias: Tensor | None,
        margin: Tensor | None,
        temperature: Temperature,
        ignore_index: int,
        label_smoothing: float,
        loss: Tensor,
        gradient: Tensor,
        log_sum_exp: Tensor,
        own_slope: Tensor,
        by_logit: Tensor,
    ) -> Tensor:
        """Return the loss, which one pass over the weight gave; torch calls it, users call `apply`."""
        return loss.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep the arguments and the numbers."""
        ctx.plain = [None if isinstance(value, Tensor) else value for value in inputs]
        tensors = [value if isinstance(value, Tensor) else None for value in inputs]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by `x`, `weight`, `bias` and `margin` that are asked for, and nothing for the others."""
        point, numbers = _given(ctx)
        needed = tuple(ctx.needs_input_grad[place] for place in PLACES)
        kept = Kept(grad_output, *numbers[1:])
        found = iter(gradients(point, kept, needed))
        by_place = {place: next(found) for place, asked in zip(PLACES, needed, strict=True) if asked}
        return tuple(by_place.get(place) for place in range(len(ctx.plain)))

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Tensor:
        """Return the derivative of each loss along the tangents of `x`, `weight`, `bias` and `margin`."""
        return directional(_given(ctx)[0], Tangent(*(grad_inputs[place] for place in PLACES)))


def _given(ctx: Any) -> tuple[Point, Numbers]:
    given = [plain if tensor is None else tensor for tensor, plain in zip(ctx.saved_tensors, ctx.plain, strict=True)]
    return Point(*given[: len(Point._fields)]), Numbers(*given[len(Point._fields) :])
