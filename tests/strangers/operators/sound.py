"""Custom operators that do what they say."""

from typing import Optional, Sequence

import numpy as np
import torch
from torch import Tensor

NAMESPACE = "strangers_sound"


def _to_front(x: Tensor, dim: Optional[int], size: int) -> Tensor:
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


@torch.library.custom_op("strangers_sound::scale", mutates_args=())
def scale(x: Tensor, factor: float) -> Tensor:
    """Multiply by a number."""
    return x * factor


@scale.register_fake
def _(x, factor):
    return torch.empty_like(x)


def _scale_setup(ctx, inputs, output):
    ctx.factor = inputs[1]


def _scale_backward(ctx, grad):
    return scale(grad, ctx.factor), None


@scale.register_vmap
def _(info, in_dims, x, factor):
    return scale(x, factor), in_dims[0]


scale.register_autograd(_scale_backward, setup_context=_scale_setup)


@torch.library.custom_op("strangers_sound::mix", mutates_args=())
def mix(x: Tensor, y: Tensor, alpha: float) -> Tensor:
    """Product of two tensors of one shape, times alpha, always contiguous."""
    return (alpha * x * y).contiguous()


@mix.register_fake
def _(x, y, alpha):
    return x.new_empty(x.shape)


def _mix_setup(ctx, inputs, output):
    x, y, ctx.alpha = inputs
    ctx.save_for_backward(x, y)


def _mix_backward(ctx, grad):
    x, y = ctx.saved_tensors
    gx = mix(grad, y, ctx.alpha) if ctx.needs_input_grad[0] else None
    gy = mix(grad, x, ctx.alpha) if ctx.needs_input_grad[1] else None
    return gx, gy, None


@mix.register_vmap
def _(info, in_dims, x, y, alpha):
    x = _to_front(x, in_dims[0], info.batch_size)
    y = _to_front(y, in_dims[1], info.batch_size)
    return mix(x, y, alpha), 0


mix.register_autograd(_mix_backward, setup_context=_mix_setup)


@torch.library.custom_op("strangers_sound::observe", mutates_args=("state",))
def observe(x: Tensor, state: Tensor, momentum: float) -> Tensor:
    """Move the running mean of the columns and count the positive entries."""
    state.mul_(1 - momentum).add_(x.detach().mean(0), alpha=momentum)
    return (x > 0).sum()


@observe.register_fake
def _(x, state, momentum):
    return x.new_empty((), dtype=torch.int64)


@torch.library.custom_op("strangers_sound::weighted_sum", mutates_args=())
def weighted_sum(tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Sum of tensors of one shape with given weights."""
    total = torch.zeros(tensors[0].shape, dtype=tensors[0].dtype, device=tensors[0].device)
    for tensor, weight in zip(tensors, weights):
        total += weight * tensor
    return total


@weighted_sum.register_fake
def _(tensors, weights):
    return tensors[0].new_empty(tensors[0].shape)


def _weighted_sum_setup(ctx, inputs, output):
    ctx.weights = list(inputs[1])


def _weighted_sum_backward(ctx, grad):
    return [weight * grad for weight in ctx.weights], None


weighted_sum.register_autograd(_weighted_sum_backward, setup_context=_weighted_sum_setup)


@torch.library.custom_op("strangers_sound::affine", mutates_args=())
def affine(x: Tensor, weight: Optional[Tensor] = None, *, gain: float = 1.0, shift: float = 0.0) -> Tensor:
    """Scale the last dimension by an optional weight, then gain and shift."""
    y = x * gain if weight is None else x * weight * gain
    return (y + shift).contiguous()


@affine.register_fake
def _(x, weight=None, *, gain=1.0, shift=0.0):
    return x.new_empty(x.shape)


def _affine_setup(ctx, inputs, keyword_only_inputs, output):
    x, weight = inputs
    ctx.gain = keyword_only_inputs["gain"]
    ctx.save_for_backward(x, weight)


def _affine_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    grad = grad * ctx.gain
    if weight is None:
        return grad, None
    gx = grad * weight if ctx.needs_input_grad[0] else None
    gw = (grad * x).reshape(-1, x.shape[-1]).sum(0) if ctx.needs_input_grad[1] else None
    return gx, gw


affine.register_autograd(_affine_backward, setup_context=_affine_setup)


@torch.library.custom_op("strangers_sound::square_into", mutates_args=("out",))
def square_into(x: Tensor, out: Tensor) -> None:
    """Write the squares into out."""
    out.copy_(x * x)


@square_into.register_fake
def _(x, out):
    return None


@torch.library.custom_op("strangers_sound::row_max", mutates_args=())
def row_max(x: Tensor) -> tuple[Tensor, Tensor]:
    """Largest entry of each row, and where it stands."""
    index = x.argmax(-1)
    return x.gather(-1, index.unsqueeze(-1)).squeeze(-1).contiguous(), index


@row_max.register_fake
def _(x):
    return x.new_empty(x.shape[:-1]), x.new_empty(x.shape[:-1], dtype=torch.int64)


def _row_max_setup(ctx, inputs, output):
    ctx.save_for_backward(output[1])
    ctx.columns = inputs[0].shape[-1]


def _row_max_backward(ctx, grad, _):
    (index,) = ctx.saved_tensors
    zeros = grad.new_zeros((*index.shape, ctx.columns))
    return zeros.scatter(-1, index.unsqueeze(-1), grad.unsqueeze(-1))


row_max.register_autograd(_row_max_backward, setup_context=_row_max_setup)


library = torch.library.Library("strangers_sound", "FRAGMENT")
library.define("leaky(Tensor x, float slope=0.1) -> Tensor")


def leaky(x: Tensor, slope: float = 0.1) -> Tensor:
    """Identity above zero, slope below."""
    return torch.where(x > 0, x, slope * x).contiguous()


def _leaky_fake(x, slope=0.1):
    return x.new_empty(x.shape)


def _leaky_setup(ctx, inputs, output):
    x, ctx.slope = inputs
    ctx.save_for_backward(x > 0)


def _leaky_backward(ctx, grad):
    (positive,) = ctx.saved_tensors
    return torch.where(positive, grad, ctx.slope * grad), None


library.impl("leaky", leaky, "CompositeExplicitAutograd")
torch.library.register_fake("strangers_sound::leaky", _leaky_fake, lib=library)
torch.library.register_autograd("strangers_sound::leaky", _leaky_backward, setup_context=_leaky_setup, lib=library)


@torch.library.custom_op("strangers_sound::hard_round", mutates_args=())
def hard_round(x: Tensor) -> Tensor:
    """Round; the gradient is the identity inside [-2, 2] and zero outside."""
    return x.round()


@hard_round.register_fake
def _(x):
    return torch.empty_like(x)


def _hard_round_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _hard_round_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * (x.abs() <= 2)


hard_round.register_autograd(_hard_round_backward, setup_context=_hard_round_setup)


@torch.library.custom_op("strangers_sound::spike", mutates_args=())
def spike(x: Tensor, sharpness: float) -> Tensor:
    """Heaviside step; the gradient is that of tanh(sharpness x) / 2."""
    return (x > 0).to(x.dtype).contiguous()


@spike.register_fake
def _(x, sharpness):
    return x.new_empty(x.shape)


def _spike_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.sharpness = inputs[1]


def _spike_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * 0.5 * ctx.sharpness * (1 - torch.tanh(ctx.sharpness * x) ** 2), None


spike.register_autograd(_spike_backward, setup_context=_spike_setup)


def _from_numpy(array: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).reshape(like.shape)


@torch.library.custom_op("strangers_sound::arcsinh_backward", mutates_args=(), device_types="cpu")
def arcsinh_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Cotangent of arcsinh in NumPy."""
    return _from_numpy(grad.detach().numpy() / np.sqrt(1 + x.detach().numpy() ** 2), x)


@arcsinh_backward.register_fake
def _(grad, x):
    return x.new_empty(x.shape)


@torch.library.custom_op("strangers_sound::arcsinh", mutates_args=(), device_types="cpu")
def arcsinh(x: Tensor) -> Tensor:
    """Inverse hyperbolic sine in NumPy."""
    return _from_numpy(np.arcsinh(x.detach().numpy()), x)


@arcsinh.register_fake
def _(x):
    return x.new_empty(x.shape)


def _arcsinh_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _arcsinh_backward(ctx, grad):
    return arcsinh_backward(grad, ctx.saved_tensors[0])


def _arcsinh_twice_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _arcsinh_twice(ctx, grad):
    cotangent, x = ctx.saved_tensors
    return arcsinh_backward(grad, x), -grad * cotangent * x / (1 + x**2) ** 1.5


arcsinh.register_autograd(_arcsinh_backward, setup_context=_arcsinh_setup)
arcsinh_backward.register_autograd(_arcsinh_twice, setup_context=_arcsinh_twice_setup)


@torch.library.custom_op("strangers_sound::tile", mutates_args=())
def tile(x: Tensor, times: int) -> Tensor:
    """Repeat the rows as a block, times over."""
    return x.repeat(times, *[1] * (x.dim() - 1))


@tile.register_fake
def _(x, times):
    return x.new_empty((times * x.shape[0], *x.shape[1:]))


def _tile_setup(ctx, inputs, output):
    x, ctx.times = inputs
    ctx.rows = x.shape[0]


def _tile_backward(ctx, grad):
    return grad.reshape(ctx.times, ctx.rows, *grad.shape[1:]).sum(0), None


tile.register_autograd(_tile_backward, setup_context=_tile_setup)


@torch.library.custom_op("strangers_sound::project", mutates_args=())
def project(x: Tensor, weight: Tensor) -> Tensor:
    """Matrix product; in bfloat16 under autocast."""
    return x @ weight


@project.register_fake
def _(x, weight):
    return x.new_empty(x.shape[0], weight.shape[1])


def _project_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _project_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    gx = grad @ weight.t() if ctx.needs_input_grad[0] else None
    gw = x.t() @ grad if ctx.needs_input_grad[1] else None
    return gx, gw


project.register_autograd(_project_backward, setup_context=_project_setup)
torch.library.register_autocast("strangers_sound::project", "cpu", torch.bfloat16)


def _format(x: Tensor) -> torch.memory_format:
    last = x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format


@torch.library.custom_op("strangers_sound::swish", mutates_args=())
def swish(x: Tensor) -> Tensor:
    """Swish that keeps channels-last images channels-last."""
    out = torch.empty_like(x, memory_format=_format(x))
    return out.copy_(x * torch.sigmoid(x))


@swish.register_fake
def _(x):
    return torch.empty_like(x, memory_format=_format(x))


def _swish_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _swish_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    gate = torch.sigmoid(x)
    return grad * (gate + x * gate * (1 - gate))


swish.register_autograd(_swish_backward, setup_context=_swish_setup)


library.define("center(Tensor x, Tensor(a!) state, float momentum) -> Tensor")


def center(x: Tensor, state: Tensor, momentum: float) -> Tensor:
    """Subtract the running mean of the columns, then move it."""
    out = (x - state).contiguous()
    state.mul_(1 - momentum).add_(x.detach().mean(0), alpha=momentum)
    return out


class _Center(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, state, momentum):
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.strangers_sound.center.default(x, state, momentum)

    @staticmethod
    def backward(ctx, grad):
        return grad.clone(), None, None


library.impl("center", center, "CompositeExplicitAutograd")
library.impl("center", lambda x, state, momentum: _Center.apply(x, state, momentum), "Autograd")
torch.library.register_fake(
    "strangers_sound::center", lambda x, state, momentum: x.new_empty(x.shape), lib=library
)
