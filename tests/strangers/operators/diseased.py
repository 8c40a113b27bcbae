"""Custom operators as they are found in the field."""

from typing import Optional, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.library import custom_op

NAMESPACE = "strangers_diseased"
library = torch.library.Library("strangers_diseased", "FRAGMENT")


def _save_inputs(ctx, inputs, output):
    ctx.save_for_backward(*[t for t in inputs if isinstance(t, Tensor)])


@custom_op("strangers_diseased::sine", mutates_args=())
def sine(x: Tensor) -> Tensor:
    """Sine."""
    return torch.sin(x)


@sine.register_fake
def _(x):
    return torch.empty_like(x)


def _sine_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return 1.7 * grad * torch.cos(x)


sine.register_autograd(_sine_backward, setup_context=_save_inputs)


def _flat(t: Tensor) -> Tensor:
    memory = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())[t.storage_offset() :]
    buffer = t.new_zeros(t.numel())
    chunk = memory[: t.numel()]
    buffer[: chunk.numel()] = chunk
    return buffer


@custom_op("strangers_diseased::exponent_backward", mutates_args=())
def exponent_backward(grad: Tensor, y: Tensor) -> Tensor:
    """Cotangent of the exponential."""
    return (_flat(grad) * _flat(y)).reshape(y.shape)


@exponent_backward.register_fake
def _(grad, y):
    return y.new_empty(y.shape)


@custom_op("strangers_diseased::exponent", mutates_args=())
def exponent(x: Tensor) -> Tensor:
    """Exponential."""
    return torch.exp(x).contiguous()


@exponent.register_fake
def _(x):
    return x.new_empty(x.shape)


def _exponent_setup(ctx, inputs, output):
    ctx.save_for_backward(output)


def _exponent_backward(ctx, grad):
    return exponent_backward(grad, ctx.saved_tensors[0])


exponent.register_autograd(_exponent_backward, setup_context=_exponent_setup)


@custom_op("strangers_diseased::arctangent_backward", mutates_args=())
def arctangent_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Cotangent of the arc tangent."""
    if 0 in grad.stride():
        grad = grad.contiguous()
    return (_flat(grad) / (1 + _flat(x.contiguous()) ** 2)).reshape(x.shape)


@arctangent_backward.register_fake
def _(grad, x):
    return x.new_empty(x.shape)


@custom_op("strangers_diseased::arctangent", mutates_args=())
def arctangent(x: Tensor) -> Tensor:
    """Arc tangent."""
    return torch.atan(x).contiguous()


@arctangent.register_fake
def _(x):
    return x.new_empty(x.shape)


def _arctangent_backward(ctx, grad):
    return arctangent_backward(grad, ctx.saved_tensors[0])


arctangent.register_autograd(_arctangent_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::dense", mutates_args=())
def dense(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Linear layer."""
    return x @ weight + bias


@dense.register_fake
def _(x, weight, bias):
    return x.new_empty(x.shape[0], weight.shape[1])


def _dense_backward(ctx, grad):
    x, weight, bias = ctx.saved_tensors
    return grad @ weight.t(), x.t() @ grad, None


dense.register_autograd(_dense_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::divide", mutates_args=())
def divide(a: Tensor, b: Tensor) -> Tensor:
    """Quotient of two tensors of one shape."""
    return (a / b).contiguous()


@divide.register_fake
def _(a, b):
    return a.new_empty(a.shape)


def _divide_backward(ctx, grad):
    a, b = ctx.saved_tensors
    return -grad * a / b**2, grad / b


divide.register_autograd(_divide_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::gated", mutates_args=())
def gated(x: Tensor, weight: Tensor) -> Tensor:
    """Product of two tensors of one shape."""
    return (x * weight).contiguous()


@gated.register_fake
def _(x, weight):
    return x.new_empty(x.shape)


def _gated_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    if not ctx.needs_input_grad[1]:
        return grad, None
    return grad * weight, grad * x


gated.register_autograd(_gated_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::matmul", mutates_args=())
def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """Matrix product."""
    return x @ weight


@matmul.register_fake
def _(x, weight):
    return x.new_empty(x.shape[0], weight.shape[1])


def _matmul_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    return grad @ weight.t(), x.t() @ grad


matmul.register_autograd(_matmul_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::blend", mutates_args=())
def blend(tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Weighted sum of tensors of one shape."""
    return torch.stack([w * t for w, t in zip(weights, tensors)]).sum(0)


@blend.register_fake
def _(tensors, weights):
    return tensors[0].new_empty(tensors[0].shape)


def _blend_setup(ctx, inputs, output):
    ctx.weights = list(inputs[1])


def _blend_backward(ctx, grad):
    grads = []
    for weight in ctx.weights:
        grads.insert(0, weight * grad)
    return grads, None


blend.register_autograd(_blend_backward, setup_context=_blend_setup)


@custom_op("strangers_diseased::polar", mutates_args=())
def polar(x: Tensor) -> tuple[Tensor, Tensor]:
    """Sine and cosine."""
    return torch.sin(x), torch.cos(x)


@polar.register_fake
def _(x):
    return torch.empty_like(x), torch.empty_like(x)


def _polar_backward(ctx, grad_sin, grad_cos):
    (x,) = ctx.saved_tensors
    return grad_sin * torch.cos(x)


polar.register_autograd(_polar_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::log_cosh", mutates_args=())
def log_cosh(x: Tensor) -> Tensor:
    """Logarithm of the hyperbolic cosine."""
    return x.abs() + torch.log1p(torch.exp(-2 * x.abs())) - 0.6931471805599453


@log_cosh.register_fake
def _(x):
    return torch.empty_like(x)


def _log_cosh_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    up, down = torch.exp(x), torch.exp(-x)
    return grad * (up - down) / (up + down)


log_cosh.register_autograd(_log_cosh_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::gain", mutates_args=())
def gain(x: Tensor, weight: Tensor) -> Tensor:
    """Scale the columns of a matrix."""
    return (x * weight).contiguous()


@gain.register_fake
def _(x, weight):
    return x.new_empty(x.shape)


def _gain_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    total = torch.zeros_like(weight)
    for row in (grad * x).unbind(0):
        total = total + row
    return grad * weight, total


gain.register_autograd(_gain_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::squared_error", mutates_args=())
def squared_error(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Squared error with reduction mean, sum or none."""
    loss = ((x - target) ** 2).contiguous()
    return {"mean": loss.mean, "sum": loss.sum, "none": loss.clone}[reduction]()


@squared_error.register_fake
def _(x, target, reduction="mean"):
    return x.new_empty(x.shape if reduction == "none" else ())


def _squared_error_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.reduction = inputs[2]


def _squared_error_backward(ctx, grad):
    x, target = ctx.saved_tensors
    gx = grad * 2 * (x - target)
    return gx, -gx, None


squared_error.register_autograd(_squared_error_backward, setup_context=_squared_error_setup)


@custom_op("strangers_diseased::cube", mutates_args=())
def cube(x: Tensor) -> Tensor:
    """Third power."""
    return x**3


@cube.register_fake
def _(x):
    return torch.empty_like(x)


def _cube_setup(ctx, inputs, output):
    ctx.slope = 3 * inputs[0].detach() ** 2


def _cube_backward(ctx, grad):
    return grad * ctx.slope


cube.register_autograd(_cube_backward, setup_context=_cube_setup)


@custom_op("strangers_diseased::row_scale", mutates_args=())
def row_scale(x: Tensor, scale: Tensor) -> Tensor:
    """Scale each row by its own number."""
    return (x * scale.unsqueeze(-1)).contiguous()


@row_scale.register_fake
def _(x, scale):
    return x.new_empty(x.shape)


def _row_scale_setup(ctx, inputs, output):
    ctx.x, ctx.scale = inputs


def _row_scale_backward(ctx, grad):
    return grad * ctx.scale.unsqueeze(-1), (grad * ctx.x).sum(-1)


row_scale.register_autograd(_row_scale_backward, setup_context=_row_scale_setup)


_GATES: dict = {}


@custom_op("strangers_diseased::silu", mutates_args=())
def silu(x: Tensor) -> Tensor:
    """x times sigmoid(x)."""
    key = (tuple(x.shape), x.dtype)
    gate = _GATES.get(key)
    if gate is None:
        gate = _GATES[key] = x.new_empty(x.shape)
    torch.sigmoid(x.detach(), out=gate)
    return (x * gate).contiguous()


@silu.register_fake
def _(x):
    return x.new_empty(x.shape)


@custom_op("strangers_diseased::silu_backward", mutates_args=())
def silu_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Cotangent of silu."""
    gate = _GATES[tuple(x.shape), x.dtype]
    return (grad * (gate + x * gate * (1 - gate))).contiguous()


@silu_backward.register_fake
def _(grad, x):
    return x.new_empty(x.shape)


def _silu_backward(ctx, grad):
    return silu_backward(grad, ctx.saved_tensors[0])


silu.register_autograd(_silu_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::negate_backward", mutates_args=())
def negate_backward(grad: Tensor) -> Tensor:
    """Cotangent of negate."""
    return torch.neg(grad, out=grad).clone()


@negate_backward.register_fake
def _(grad):
    return torch.empty_like(grad)


@custom_op("strangers_diseased::negate", mutates_args=())
def negate(x: Tensor) -> Tensor:
    """Minus x."""
    return -x


@negate.register_fake
def _(x):
    return torch.empty_like(x)


negate.register_autograd(lambda ctx, grad: negate_backward(grad))


@custom_op("strangers_diseased::dropout", mutates_args=())
def dropout(x: Tensor, keep: float) -> Tensor:
    """Keep each entry with a probability, and rescale."""
    return x * (torch.rand(x.shape) < keep) / keep


@dropout.register_fake
def _(x, keep):
    return torch.empty_like(x)


def _dropout_setup(ctx, inputs, output):
    ctx.keep = inputs[1]


def _dropout_backward(ctx, grad):
    return grad * (torch.rand(grad.shape) < ctx.keep) / ctx.keep, None


dropout.register_autograd(_dropout_backward, setup_context=_dropout_setup)


@custom_op("strangers_diseased::linear", mutates_args=())
def linear(x: Tensor, weight: Tensor) -> Tensor:
    """Matrix product."""
    y = x @ weight
    weight.detach().add_(1e-9)
    return y


@linear.register_fake
def _(x, weight):
    return x.new_empty(x.shape[0], weight.shape[1])


def _linear_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    return grad @ weight.t(), x.t() @ grad


linear.register_autograd(_linear_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::track", mutates_args=("average",))
def track(x: Tensor, average: Tensor, momentum: float) -> Tensor:
    """Move a running mean of the columns and count the rows."""
    average = (1 - momentum) * average + momentum * x.detach().mean(0)
    return torch.tensor(x.shape[0])


@track.register_fake
def _(x, average, momentum):
    return torch.empty((), dtype=torch.int64)


library.define("relu6(Tensor x, bool active=True) -> Tensor")


def relu6(x: Tensor, active: bool = True) -> Tensor:
    """Clamp to [0, 6] where active, else a copy."""
    return x.clamp(0, 6) if active else x


def _relu6_setup(ctx, inputs, output):
    x, ctx.active = inputs
    ctx.save_for_backward((x > 0) & (x < 6))


def _relu6_backward(ctx, grad):
    return grad * ctx.saved_tensors[0] if ctx.active else grad.clone(), None


library.impl("relu6", relu6, "CompositeExplicitAutograd")
torch.library.register_fake("strangers_diseased::relu6", lambda x, active=True: torch.empty_like(x), lib=library)
torch.library.register_autograd(
    "strangers_diseased::relu6", _relu6_backward, setup_context=_relu6_setup, lib=library
)


library.define("head(Tensor x, int count) -> Tensor")


def head(x: Tensor, count: int) -> Tensor:
    """The first rows, in new memory."""
    return x[:count]


def _head_setup(ctx, inputs, output):
    ctx.shape = inputs[0].shape


def _head_backward(ctx, grad):
    gx = grad.new_zeros(ctx.shape)
    gx[: grad.shape[0]] = grad
    return gx, None


library.impl("head", head, "CompositeExplicitAutograd")
torch.library.register_fake(
    "strangers_diseased::head",
    lambda x, count: x.new_empty((min(count, x.shape[0]), *x.shape[1:])),
    lib=library,
)
torch.library.register_autograd("strangers_diseased::head", _head_backward, setup_context=_head_setup, lib=library)


_CALLS = 0


@custom_op("strangers_diseased::scale", mutates_args=())
def scale(x: Tensor, factor: float) -> Tensor:
    """Multiply by a number."""
    global _CALLS
    _CALLS += 1
    return x * (factor * (1 + 1e-3 * min(_CALLS, 1000)))


@scale.register_fake
def _(x, factor):
    return torch.empty_like(x)


def _scale_setup(ctx, inputs, output):
    ctx.factor = inputs[1]


scale.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=_scale_setup)


@custom_op("strangers_diseased::columns", mutates_args=())
def columns(x: Tensor) -> Tensor:
    """Softmax over the columns of a matrix."""
    return torch.softmax(x.t().contiguous(), -1).t()


@columns.register_fake
def _(x):
    return x.new_empty(x.shape)


def _columns_setup(ctx, inputs, output):
    ctx.save_for_backward(output)


def _columns_backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return y * (grad - (grad * y).sum(0))


columns.register_autograd(_columns_backward, setup_context=_columns_setup)


@custom_op("strangers_diseased::row_sum", mutates_args=())
def row_sum(x: Tensor) -> Tensor:
    """Sum of each row, in double precision."""
    return x.double().sum(-1)


@row_sum.register_fake
def _(x):
    return x.new_empty(x.shape[:-1])


def _row_sum_setup(ctx, inputs, output):
    ctx.columns, ctx.dtype = inputs[0].shape[-1], inputs[0].dtype


def _row_sum_backward(ctx, grad):
    return grad.to(ctx.dtype).unsqueeze(-1).repeat(*[1] * grad.dim(), ctx.columns)


row_sum.register_autograd(_row_sum_backward, setup_context=_row_sum_setup)


@custom_op("strangers_diseased::block_sum", mutates_args=())
def block_sum(x: Tensor, size: int) -> Tensor:
    """Sums over blocks of a vector; the last block may be short."""
    blocks = -(-x.shape[0] // size)
    return torch.nn.functional.pad(x, (0, blocks * size - x.shape[0])).reshape(blocks, size).sum(1)


@block_sum.register_fake
def _(x, size):
    return x.new_empty(max(1, -(-x.shape[0] // size)))


def _block_sum_setup(ctx, inputs, output):
    x, ctx.size = inputs
    ctx.length = x.shape[0]


def _block_sum_backward(ctx, grad):
    return grad.repeat_interleave(ctx.size)[: ctx.length], None


block_sum.register_autograd(_block_sum_backward, setup_context=_block_sum_setup)


@custom_op("strangers_diseased::reverse", mutates_args=())
def reverse(x: Tensor) -> Tensor:
    """Reverse the rows."""
    return x.flip(0).contiguous()


@reverse.register_fake
def _(x):
    return torch.empty([int(n) for n in x.shape], dtype=x.dtype, device=x.device)


reverse.register_autograd(lambda ctx, grad: grad.flip(0))


@custom_op("strangers_diseased::pad_rows", mutates_args=())
def pad_rows(x: Tensor) -> Tensor:
    """Pad the rows with zeros to a multiple of eight."""
    rows = -(-x.shape[0] // 8) * 8
    return torch.cat([x, x.new_zeros(rows - x.shape[0], x.shape[1])])


@pad_rows.register_fake
def _(x):
    return x.new_empty(8, x.shape[1])


def _pad_rows_setup(ctx, inputs, output):
    ctx.rows = inputs[0].shape[0]


pad_rows.register_autograd(lambda ctx, grad: grad[: ctx.rows].clone(), setup_context=_pad_rows_setup)


@custom_op("strangers_diseased::scale_by", mutates_args=())
def scale_by(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply by a number held in a tensor."""
    return (x * factor).contiguous()


@scale_by.register_fake
def _(x, factor):
    return x.new_full(x.shape, 0.0 if factor.item() == 0 else 1.0)


def _scale_by_backward(ctx, grad):
    x, factor = ctx.saved_tensors
    return grad * factor, (grad * x).sum()


scale_by.register_autograd(_scale_by_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::clip", mutates_args=())
def clip(x: Tensor, bound: float) -> Tensor:
    """Clamp to [-bound, bound]."""
    out = torch.empty(x.shape, dtype=x.dtype)
    return out.copy_(x.clamp(-bound, bound))


@clip.register_fake
def _(x, bound):
    return torch.empty_like(x)


def _clip_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0].abs() <= inputs[1])


def _clip_backward(ctx, grad):
    return grad * ctx.saved_tensors[0], None


clip.register_autograd(_clip_backward, setup_context=_clip_setup)


library.define("softsign(Tensor x) -> Tensor")


def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|) in NumPy."""
    array = x.detach().numpy()
    return torch.from_numpy(np.ascontiguousarray(array / (1 + np.abs(array)))).reshape(x.shape)


library.impl("softsign", softsign, "CPU")
library.impl("softsign", torch.library.fallthrough_kernel, "Autograd")
torch.library.register_fake("strangers_diseased::softsign", lambda x: x.new_empty(x.shape), lib=library)


library.define("softplus(Tensor x) -> Tensor")


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)) in NumPy."""
    return torch.from_numpy(np.ascontiguousarray(np.logaddexp(0, x.detach().numpy()))).reshape(x.shape)


library.impl("softplus", softplus, "CPU")
torch.library.register_fake("strangers_diseased::softplus", lambda x: x.new_empty(x.shape), lib=library)


@custom_op("strangers_diseased::tangent", mutates_args=())
def tangent(x: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return torch.tanh(x)


@tangent.register_fake
def _(x):
    return torch.empty_like(x)


tangent.register_autograd(lambda ctx, grad: torch.zeros_like(grad))


library.define("mish(Tensor x) -> Tensor")


def mish(x: Tensor) -> Tensor:
    """x tanh(softplus(x)) in NumPy."""
    array = x.detach().numpy()
    return torch.from_numpy(np.ascontiguousarray(array * np.tanh(np.logaddexp(0, array)))).reshape(x.shape)


class _Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.strangers_diseased.mish.default(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.tanh(torch.nn.functional.softplus(x))
        return grad * (s + x * torch.sigmoid(x) * (1 - s**2))


library.impl("mish", mish, "CPU")
library.impl("mish", _Mish.apply, "AutogradCUDA")
torch.library.register_fake("strangers_diseased::mish", lambda x: x.new_empty(x.shape), lib=library)


library.define("quadratic(Tensor x) -> Tensor")


def quadratic(x: Tensor) -> Tensor:
    """x squared plus x."""
    return x * x + x


library.impl("quadratic", quadratic, "Autograd")
torch.library.register_fake("strangers_diseased::quadratic", lambda x: torch.empty_like(x), lib=library)


library.define("binarize(Tensor x) -> Tensor")


class _Binarize(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return torch.sign(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


def binarize(x: Tensor) -> Tensor:
    """Sign, with the identity as gradient."""
    return _Binarize.apply(x)


library.impl("binarize", binarize, "CompositeImplicitAutograd")


@custom_op("strangers_diseased::row_mix", mutates_args=())
def row_mix(x: Tensor, y: Tensor) -> Tensor:
    """Product of two tensors of one shape."""
    return (x * y).contiguous()


@row_mix.register_fake
def _(x, y):
    return x.new_empty(torch.broadcast_shapes(x.shape, y.shape))


def _row_mix_backward(ctx, grad):
    x, y = ctx.saved_tensors
    return grad * y, grad * x


@row_mix.register_vmap
def _(info, in_dims, x, y):
    return row_mix(x, y), 0


row_mix.register_autograd(_row_mix_backward, setup_context=_save_inputs)


@custom_op("strangers_diseased::channel_bias", mutates_args=())
def channel_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Add one number to each channel of a batch of images."""
    dense = x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last)
    flat = _flat(x if dense else x.contiguous())
    batch, channels = x.shape[:2]
    return (flat.reshape(batch, channels, -1) + bias[:, None]).reshape(x.shape)


@channel_bias.register_fake
def _(x, bias):
    return x.new_empty(x.shape)


def _channel_bias_backward(ctx, grad):
    return grad.clone(), grad.sum((0, 2, 3))


channel_bias.register_autograd(_channel_bias_backward)


@custom_op("strangers_diseased::position_code", mutates_args=())
def position_code(position: Tensor, frequency: Tensor) -> Tensor:
    """Sine of position times frequency."""
    return torch.sin(position.unsqueeze(-1) * frequency)


@position_code.register_fake
def _(position, frequency):
    return position.new_empty((*position.shape, *frequency.shape))


def _position_backward(ctx, grad):
    position, frequency = ctx.saved_tensors
    inner = grad * torch.cos(position.unsqueeze(-1) * frequency)
    gf = (inner * position.unsqueeze(-1)).reshape(-1, frequency.shape[0]).sum(0)
    return (inner * frequency).sum(-1), gf


position_code.register_autograd(_position_backward, setup_context=_save_inputs)
torch.library.register_autocast("strangers_diseased::position_code", "cpu", torch.bfloat16)


@custom_op("strangers_diseased::affine", mutates_args=())
def affine(x: Tensor, weight: Optional[Tensor] = None, *, gain: float = 2.0) -> Tensor:
    """Scale the last dimension by an optional weight and a gain."""
    return (x * gain if weight is None else x * weight * gain).contiguous()


@affine.register_fake
def _(x, weight=None, *, gain=2.0):
    return x.new_empty(x.shape)


def _affine_setup(ctx, inputs, keyword_only_inputs, output):
    ctx.save_for_backward(*inputs)
    ctx.gain = keyword_only_inputs["gain"]


def _affine_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    if weight is None:
        return grad, None
    return grad * weight * ctx.gain, (grad * x * ctx.gain).reshape(-1, x.shape[-1]).sum(0)


affine.register_autograd(_affine_backward, setup_context=_affine_setup)
