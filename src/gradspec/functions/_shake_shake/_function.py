"""ShakeShake: a random mixture of two branches, whose gradient is another random mixture."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Generator, Tensor
from torch.autograd import Function

from gradspec.functions._coefficient import Coefficient as Weight
from gradspec.functions._coefficient import save_coefficient, saved_coefficient
from gradspec.functions._shake_shake import _noise as noise
from gradspec.functions._shake_shake._mix import mix, mix_in_place, stop_gradient_form
from gradspec.functions._shake_shake._noise import EVEN, EVENS
from gradspec.functions._torch import allow_in_graph, keep_signature


@allow_in_graph
@keep_signature
class ShakeShake(Function):
    r"""Mix two branches at random in the forward pass, and their gradients at random again in the backward pass.

    .. math::

        y = \alpha x_1 + (1 - \alpha) x_2, \qquad
        \bar{x}_1 = \beta\,\bar{y}, \qquad
        \bar{x}_2 = (1 - \beta)\,\bar{y}

    In training each sample has an :math:`\alpha` and a :math:`\beta` of its own, independent and uniform on [0, 1); in
    evaluation both are 1/2, and nothing is drawn. The forward pass draws both, so that a second backward pass, and
    recomputation under `torch.utils.checkpoint`, have the same gradient.

    Example:
        >>> import torch
        >>> x1 = torch.tensor([[1.0, 2.0]], requires_grad=True)
        >>> x2 = torch.tensor([[3.0, 6.0]], requires_grad=True)
        >>> y = ShakeShake.apply(x1, x2, False)
        >>> y.tolist()
        [[2.0, 4.0]]
        >>> y.sum().backward()
        >>> x1.grad
        tensor([[0.5000, 0.5000]])

        In training, the two gradients are random, and sum to the cotangent:

        >>> x1.grad = x2.grad = None
        >>> ShakeShake.apply(x1, x2).sum().backward()
        >>> bool(torch.allclose(x1.grad + x2.grad, torch.ones(1, 2)))
        True

    References:
        `Shake-Shake regularization <https://arxiv.org/abs/1705.07485>`_, Gastaldi, 2017.
    """

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x1: Tensor, x2: Tensor, training: bool = True, *weights: Weight) -> Tensor:
        """Return a mixture of `x1` and `x2`.

        Args:
            x1: shape (B, ...), floating.
            x2: shape, dtype and device of `x1`.
            training: draw the weights, one pair a sample, from torch's generator of the device; without, both
                branches and both gradients weigh 1/2. Under `torch.no_grad()` the forward pass mixes at random all
                the same.
            weights: none, or both `alpha` and `beta`, which then are not drawn: `mix_branches` gives them, and so
                does torch, which calls `apply` again inside each `torch.func` transform.

        Returns:
            A new tensor: same shape, dtype and device.

        Raises:
            TypeError: a branch is not floating, or is not a tensor.
            ValueError: shapes, dtypes or devices differ, or there is no batch dimension.
        """
        if weights:
            noise.check_branches(x1, x2, call="mix_branches")
            alpha, beta = noise.checked_weights(x1, weights, call="mix_branches")
        else:
            noise.check_branches(x1, x2, call="ShakeShake.apply", level="image")
            alpha, beta = noise.weights(x1, forward="shake", backward="shake", level="image") if training else EVENS
        if torch.compiler.is_exporting():
            return stop_gradient_form(x1, x2, alpha, beta)
        return cast(Tensor, super().apply(x1, x2, training, alpha, beta))  # type: ignore[no-untyped-call]

    @staticmethod
    def forward(x1: Tensor, x2: Tensor, training: bool = True, alpha: Weight = EVEN, beta: Weight = EVEN) -> Tensor:
        """Return `alpha * x1 + (1 - alpha) * x2`, or the mean in evaluation; torch calls it, users call `apply`."""
        return mix_in_place(x1, x2, alpha if training else EVEN)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, bool, Weight, Weight], output: Tensor) -> None:
        """Keep `beta` for the backward pass and for forward mode: a tensor where torch tracks it, a float on ctx."""
        _, _, training, _, beta = inputs
        save_coefficient(ctx, beta if training else EVEN)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        """Return `beta * grad_output` for `x1` and the rest for `x2`, where they are needed."""
        beta = saved_coefficient(ctx)
        grad_x1 = beta * grad_output if ctx.needs_input_grad[0] else None
        grad_x2 = (1 - beta) * grad_output if ctx.needs_input_grad[1] else None
        return grad_x1, grad_x2, None, None, None

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Tensor:
        """Return `beta * x1_dot + (1 - beta) * x2_dot`, the derivative of the surrogate."""
        x1_dot, x2_dot, *_ = grad_inputs
        return mix(x1_dot, x2_dot, saved_coefficient(ctx))


def mix_branches(x1: Tensor, x2: Tensor, alpha: Weight, beta: Weight) -> Tensor:
    """Mix two branches by `alpha` and their gradients by `beta`: `ShakeShake` with its noise given.

    Args:
        x1: any shape, floating.
        x2: shape, dtype and device of `x1`.
        alpha: how much of the first branch, `x1`, the output takes; a float, or a tensor that broadcasts to the shape
            of `x1`.
        beta: how much of the cotangent the first branch gets; as `alpha`. No gradient flows to either.

    Returns:
        A new tensor: same shape, dtype and device as `x1`.

    Raises:
        TypeError: a branch is not floating, or is not a tensor; a weight is not real, or is neither a float nor a
            tensor.
        ValueError: shapes, dtypes or devices differ; a weight requires grad, carries a tangent, or does not broadcast.

    Example:
        >>> import torch
        >>> x1 = torch.tensor([[1.0, 2.0]], requires_grad=True)
        >>> x2 = torch.tensor([[3.0, 6.0]], requires_grad=True)
        >>> y = mix_branches(x1, x2, 0.75, 0.25)
        >>> y.tolist()
        [[1.5, 3.0]]
        >>> y.sum().backward()
        >>> x1.grad, x2.grad
        (tensor([[0.2500, 0.2500]]), tensor([[0.7500, 0.7500]]))
    """
    return ShakeShake.apply(x1, x2, True, alpha, beta)


def shake_shake(
    x1: Tensor,
    x2: Tensor,
    training: bool = True,
    *,
    forward: str = "shake",
    backward: str = "shake",
    level: str = "image",
    generator: Generator | None = None,
) -> Tensor:
    """Mix two branches at random, in any of the modes of Gastaldi (2017).

    Args:
        x1: shape (B, ...), floating; any shape with `level="batch"`.
        x2: shape, dtype and device of `x1`.
        training: without it both branches and both gradients weigh 1/2, whatever the mode, and nothing is drawn.
        forward: the weights of the forward pass: "shake" draws them, "even" is 1/2.
        backward: the weights of the backward pass: "shake" draws new ones, "keep" takes those of the forward pass,
            "even" is 1/2.
        level: "image" draws a weight a sample, "batch" one for all.
        generator: where the numbers come from; torch's own generator of the device unless given. Checkpointing
            rewinds torch's own generators only.

    Returns:
        A new tensor: same shape, dtype and device.

    Raises:
        TypeError: a branch is not floating, or is not a tensor.
        ValueError: an option is not one of its choices; shapes, dtypes or devices differ; there is no batch dimension.
        RuntimeError: a generator is given under `torch.compile` or `torch.export`.

    Example:
        >>> import torch
        >>> x1 = torch.zeros(2, 3, requires_grad=True)
        >>> x2 = torch.ones(2, 3, requires_grad=True)
        >>> y = shake_shake(x1, x2, backward="keep")  # alpha * 0 + (1 - alpha) * 1
        >>> y.sum().backward()
        >>> bool(torch.equal(x2.grad, y))
        True
    """
    noise.check_options("shake_shake", forward=forward, backward=backward, level=level)
    if generator is not None and torch.compiler.is_compiling():
        raise RuntimeError(
            "shake_shake: a generator is given under torch.compile or torch.export, which trace torch's own alone. "
            "Leave it out and seed with torch.manual_seed, or call shake_shake outside the compiled region"
        )
    noise.check_branches(x1, x2, call="shake_shake", level=level)
    if not training:
        return ShakeShake.apply(x1, x2, False, *EVENS)
    alpha, beta = noise.weights(x1, forward=forward, backward=backward, level=level, generator=generator)
    return ShakeShake.apply(x1, x2, True, alpha, beta)
