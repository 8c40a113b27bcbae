"""GradFactor: the identity whose gradient is multiplied by a factor."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx

from gradspec.functions._coefficient import Coefficient as Factor
from gradspec.functions._coefficient import save_coefficient
from gradspec.functions._gradient_scaling import _scaling as scaling
from gradspec.functions._gradient_scaling._scaling import REQUIRED
from gradspec.functions._torch import allow_in_graph, keep_signature


@allow_in_graph
@keep_signature
class GradFactor(Function):
    r"""Return x unchanged, and multiply the gradient that flows back through it by a factor.

    .. math::

        y = x, \qquad \bar{x} = f\,\bar{y}

    The forward pass copies nothing: the output is a view of `x` that autograd tracks, so an in-place operation on it
    raises, and `GradFactor.apply(x, 0.1).clone()` may be changed at will. A call under `torch.func`, `torch.vmap`,
    `torch.compile`, `torch.export` or forward mode has the same gradient.

    Example:
        >>> import torch
        >>> x = torch.ones(3, requires_grad=True)
        >>> y = GradFactor.apply(x, 0.1)
        >>> y.tolist()
        [1.0, 1.0, 1.0]
        >>> y.sum().backward()
        >>> x.grad
        tensor([0.1000, 0.1000, 0.1000])

    References:
        `Deep Differentiable Logic Gate Networks <https://arxiv.org/abs/2210.08277>`_, Petersen et al., 2022.
    """

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x: Tensor, f: Factor = REQUIRED) -> Tensor:
        """Return `x`, and multiply its gradient by `f`.

        Args:
            x: any shape; floating or complex. Integers and booleans, to which no gradient flows, pass through.
            f: a real number, or a real tensor that broadcasts to x's shape; cast to x's dtype. No gradient flows
                to it.

        Returns:
            A tracked view of `x`: same shape, dtype, device and memory. Where `x` carries a tangent, a copy.

        Raises:
            TypeError: `x` is not a tensor, the arguments are in a tuple, or `f` is missing, is complex, or is neither a
                float nor a tensor.
            ValueError: `f` requires grad, carries a tangent, or does not broadcast to x's shape.
        """
        return scaling.apply_scaling(cls, x, f, call="GradFactor.apply", name="f")

    @staticmethod
    def forward(x: Tensor, f: Factor) -> Tensor:
        """Return a view of `x`; torch calls it, users call `apply`."""
        return scaling.identity(x)

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Tensor, Factor], output: Tensor) -> None:
        """Keep `f` for the backward pass and for forward mode."""
        save_coefficient(ctx, inputs[1])

    @staticmethod
    def backward(ctx: FunctionCtx, grad_y: Tensor) -> tuple[Tensor, None]:
        """Return `f * grad_y` for `x`, and nothing for `f`."""
        return scaling.scaled(ctx, grad_y), None

    @staticmethod
    def jvp(ctx: FunctionCtx, *grad_inputs: Any) -> Tensor:
        """Return `f * x_dot`, the derivative of the surrogate, where `x_dot` is the tangent of `x`."""
        return scaling.scaled(ctx, grad_inputs[0])


def grad_factor(x: Tensor, factor: Factor = REQUIRED) -> Tensor:
    """Return `x`, and multiply its gradient by `factor`: `GradFactor.apply` as a plain function.

    Args:
        x: any shape; floating or complex.
        factor: a real number, or a real tensor that broadcasts to x's shape.

    Returns:
        A tracked view of `x`.

    Raises:
        TypeError: as `GradFactor.apply`.
        ValueError: as `GradFactor.apply`.

    Example:
        >>> import torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> loss = (grad_factor(x, 0.5) ** 2).sum()
        >>> loss.backward()
        >>> x.grad
        tensor([1., 2.])
    """
    return GradFactor.apply(x, factor)
