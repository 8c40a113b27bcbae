"""Small rebuilds of public reports, one operator or Function each."""

import torch
from torch import Tensor
from torch.autograd import Function
from torch.library import custom_op

NAMESPACE = "strangers_reports"
#: The reports that were named before anything here was written, by a survey of what people who write custom gradients
#: struggle with (2024 to 2026). The other addresses below were found later.
SURVEYED = (
    "https://github.com/pytorch/pytorch/issues/193279",
    "https://github.com/pytorch/pytorch/issues/192985",
    "https://github.com/pytorch/pytorch/issues/182328",
    "https://github.com/NVIDIA/cuEquivariance/issues/223",
    "https://github.com/pytorch/torchtitan/pull/3250",
    "https://github.com/unslothai/unsloth-zoo/pull/434",
    "https://github.com/linkedin/Liger-Kernel/issues/968",
    "https://github.com/linkedin/Liger-Kernel/issues/930",
    "https://github.com/pytorch/pytorch/issues/194719",
    "https://github.com/pytorch/pytorch/pull/195210",
    "https://github.com/ScalingIntelligence/KernelBench/issues/165",
    "https://github.com/linkedin/Liger-Kernel/issues/272",
    "https://github.com/linkedin/Liger-Kernel/pull/1251",
    "https://github.com/state-spaces/mamba/issues/239",
)


@custom_op("strangers_reports::fused_gelu_backward", mutates_args=())
def fused_gelu_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Cotangent of fused_gelu."""
    memory = torch.empty(0, dtype=grad.dtype).set_(grad.untyped_storage())[grad.storage_offset() :]
    values = grad.new_zeros(grad.numel())
    values[: memory.numel()] = memory[: grad.numel()]
    slope = torch.sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - torch.sigmoid(1.702 * x)))
    return (values.reshape(x.shape) * slope).contiguous()


@fused_gelu_backward.register_fake
def _(grad, x):
    return x.new_empty(x.shape)


@custom_op("strangers_reports::fused_gelu", mutates_args=())
def fused_gelu(x: Tensor) -> Tensor:
    """Quick GELU. https://github.com/pytorch/pytorch/issues/194719: the kernel of the backward reads the narrow cotangent of torch.cat as if it were contiguous."""
    return (x * torch.sigmoid(1.702 * x)).contiguous()


@fused_gelu.register_fake
def _(x):
    return x.new_empty(x.shape)


def _fused_gelu_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


fused_gelu.register_autograd(
    lambda ctx, grad: fused_gelu_backward(grad, ctx.saved_tensors[0]), setup_context=_fused_gelu_setup
)


class RoundThrough(Function):
    """Round, identity backward. https://github.com/pytorch/pytorch/issues/193279: torch.compile of torch.func.grad drops the backward, and the gradient is zero."""

    @staticmethod
    def forward(x):
        return torch.round(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


class DoubledSquare(Function):
    """Square of 2x. https://github.com/pytorch/pytorch/issues/58509: an intermediate kept on ctx makes the second derivative wrong, though the first is right."""

    @staticmethod
    def forward(ctx, x):
        twice = 2 * x
        ctx.twice = twice
        return twice**2

    @staticmethod
    def backward(ctx, grad):
        return grad * 4 * ctx.twice


class OffloadedLogSoftmax(Function):
    """Log-softmax of a linear layer, recomputed. https://github.com/unslothai/unsloth-zoo/pull/892: backward runs torch.autograd.backward into the leaf and returns its .grad, so the weight gradient is doubled."""

    @staticmethod
    def forward(ctx, hidden, weight):
        ctx.save_for_backward(hidden)
        ctx.weight = weight
        return torch.log_softmax(hidden @ weight, -1)

    @staticmethod
    def backward(ctx, grad):
        (hidden,) = ctx.saved_tensors
        hidden = hidden.detach().requires_grad_()
        with torch.enable_grad():
            output = torch.log_softmax(hidden @ ctx.weight, -1)
        torch.autograd.backward(output, grad)
        return hidden.grad, ctx.weight.grad


@custom_op("strangers_reports::token_loss", mutates_args=())
def token_loss(hidden: Tensor, weight: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cross entropy a token, with gradients from the forward. https://github.com/linkedin/Liger-Kernel/pull/1298: with reduction none the whole gradient is multiplied by the first entry of the cotangent."""
    logits = hidden @ weight
    slope = torch.softmax(logits, -1)
    slope = slope - torch.nn.functional.one_hot(target, logits.shape[-1])
    loss = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    return loss, slope @ weight.t(), hidden.t() @ slope


@token_loss.register_fake
def _(hidden, weight, target):
    return hidden.new_empty(hidden.shape[0]), hidden.new_empty(hidden.shape), weight.new_empty(weight.shape)


def _token_loss_setup(ctx, inputs, output):
    ctx.mark_non_differentiable(output[1], output[2])
    ctx.save_for_backward(output[1], output[2])


def _token_loss_backward(ctx, grad, _hidden, _weight):
    grad_hidden, grad_weight = ctx.saved_tensors
    return grad_hidden * grad[0], grad_weight * grad[0], None


token_loss.register_autograd(_token_loss_backward, setup_context=_token_loss_setup)


class InPlaceCrossEntropy(Function):
    """Mean cross entropy. https://github.com/linkedin/Liger-Kernel/issues/272: the forward stores its gradient in the memory of its input, unseen by the version counter, so the operator before gets a wrong gradient."""

    @staticmethod
    def forward(ctx, logits, target):
        loss = torch.nn.functional.cross_entropy(logits, target)
        slope = torch.softmax(logits, -1) - torch.nn.functional.one_hot(target, logits.shape[-1])
        logits.data.copy_(slope / logits.shape[0])
        ctx.slope = logits.data
        return loss

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.slope, None


class MaskedSoftmax(Function):
    """Softmax. https://github.com/NVIDIA/apex/issues/1430: the backward writes its result over the cotangent it was given."""

    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        inner = (grad * y).sum(-1, keepdim=True)
        return grad.sub_(inner).mul_(y)


@custom_op("strangers_reports::wide_softmax", mutates_args=())
def wide_softmax(x: Tensor) -> Tensor:
    """Softmax of wide rows. https://github.com/ScalingIntelligence/KernelBench/issues/165: returns zeros, which an absolute tolerance of 1e-2 accepts for rows of many entries."""
    return torch.zeros(x.shape, dtype=x.dtype)


@wide_softmax.register_fake
def _(x):
    return x.new_empty(x.shape)


def _wide_softmax_setup(ctx, inputs, output):
    ctx.save_for_backward(output)


def _wide_softmax_backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return y * (grad - (grad * y).sum(-1, keepdim=True))


wide_softmax.register_autograd(_wide_softmax_backward, setup_context=_wide_softmax_setup)


class ChunkedLoss(Function):
    """Mean cross entropy of a linear layer in chunks. https://github.com/pytorch/torchtitan/pull/3250: the backward returns the saved gradients and ignores the cotangent."""

    @staticmethod
    def forward(ctx, hidden, weight, target, chunks):
        total = hidden.new_zeros(())
        grad_hidden, grad_weight = [], torch.zeros_like(weight)
        for h, t in zip(hidden.chunk(chunks), target.chunk(chunks)):
            logits = h @ weight
            slope = torch.softmax(logits, -1) - torch.nn.functional.one_hot(t, logits.shape[-1])
            slope = slope / hidden.shape[0]
            total = total + torch.nn.functional.cross_entropy(logits, t, reduction="sum") / hidden.shape[0]
            grad_hidden.append(slope @ weight.t())
            grad_weight = grad_weight + h.t() @ slope
        ctx.save_for_backward(torch.cat(grad_hidden), grad_weight)
        return total

    @staticmethod
    def backward(ctx, grad):
        return (*ctx.saved_tensors, None, None)


@custom_op("strangers_reports::z_loss", mutates_args=())
def z_loss(logits: Tensor, target: Tensor, multiplier: float = 0.0) -> Tensor:
    """Cross entropy with an optional term on the log partition. https://github.com/allenai/OLMo-core/pull/702: with the term off, 1e-4 times it is added all the same."""
    scale = multiplier or 1e-4
    loss = torch.nn.functional.cross_entropy(logits, target)
    return loss + scale * torch.logsumexp(logits, -1).pow(2).mean()


@z_loss.register_fake
def _(logits, target, multiplier=0.0):
    return logits.new_empty(())


def _z_loss_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.scale = inputs[2] or 1e-4


def _z_loss_backward(ctx, grad):
    logits, target = ctx.saved_tensors
    p = torch.softmax(logits, -1)
    slope = p - torch.nn.functional.one_hot(target, logits.shape[-1])
    slope = slope + 2 * ctx.scale * torch.logsumexp(logits, -1, keepdim=True) * p
    return grad * slope / logits.shape[0], None, None


z_loss.register_autograd(_z_loss_backward, setup_context=_z_loss_setup)


@custom_op("strangers_reports::token_logprob_backward", mutates_args=())
def token_logprob_backward(grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
    """Cotangent of token_logprob."""
    memory = torch.empty(0, dtype=grad.dtype).set_(grad.untyped_storage())[grad.storage_offset() :]
    values = grad.new_zeros(grad.numel())
    values[: memory.numel()] = memory[: grad.numel()]
    slope = torch.nn.functional.one_hot(target, logits.shape[-1]) - torch.softmax(logits, -1)
    return values.unsqueeze(-1) * slope


@token_logprob_backward.register_fake
def _(grad, logits, target):
    return logits.new_empty(logits.shape)


@custom_op("strangers_reports::token_logprob", mutates_args=())
def token_logprob(logits: Tensor, target: Tensor) -> Tensor:
    """Log-probability of each token. https://github.com/verl-project/verl/pull/6960: the backward reads a strided cotangent (masked or sliced downstream) as a dense vector."""
    return torch.log_softmax(logits, -1).gather(-1, target.unsqueeze(-1)).squeeze(-1).contiguous()


@token_logprob.register_fake
def _(logits, target):
    return logits.new_empty(target.shape)


def _token_logprob_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


token_logprob.register_autograd(
    lambda ctx, grad: (token_logprob_backward(grad, *ctx.saved_tensors), None), setup_context=_token_logprob_setup
)


@custom_op("strangers_reports::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Root-mean-square norm. https://github.com/linkedin/Liger-Kernel/pull/950: the weight gradient is summed over the rows in bfloat16."""
    z = x.float()
    return (z * torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(x.dtype).contiguous()


@rms_norm.register_fake
def _(x, weight):
    return x.new_empty(x.shape)


def _rms_norm_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _rms_norm_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    z, g = x.float(), grad.float()
    rstd = torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-6)
    inner = g * weight.float()
    gx = rstd * (inner - z * rstd**2 * (inner * z).mean(-1, keepdim=True))
    gw = torch.zeros_like(weight)
    for row in (g * z * rstd).to(x.dtype).unbind(0):
        gw = gw + row
    return gx.to(x.dtype), gw


rms_norm.register_autograd(_rms_norm_backward, setup_context=_rms_norm_setup)


@custom_op("strangers_reports::expert", mutates_args=())
def expert(x: Tensor, weight: Tensor, width: int) -> Tensor:
    """Expert layer cut to its true width. https://github.com/pytorch/pytorch/issues/182328: the kernel returns the unpadded width, the fake kernel the padded one."""
    return (x @ weight)[:, :width].contiguous()


@expert.register_fake
def _(x, weight, width):
    return x.new_empty(x.shape[0], weight.shape[1])


@custom_op("strangers_reports::grad_weight", mutates_args=())
def grad_weight(x: Tensor, grad: Tensor) -> Tensor:
    """Weight gradient, laid out column by column. https://github.com/KellerJordan/modded-nanogpt/pull/83: the fake kernel says row by row."""
    return (grad.t() @ x).contiguous().t()


@grad_weight.register_fake
def _(x, grad):
    return x.new_empty(x.shape[1], grad.shape[1])


@custom_op("strangers_reports::shift_sine", mutates_args=())
def shift_sine(x: Tensor, y: Tensor) -> Tensor:
    """Sum of two sines. https://github.com/pytorch/pytorch/issues/129372: writes to its arguments without saying so."""
    return x.sin_() + y.sin_()


@shift_sine.register_fake
def _(x, y):
    return torch.empty_like(x)


class ScaledLoss(Function):
    """Loss a sample with gradients from the forward. https://github.com/unslothai/unsloth-zoo/pull/434: the cotangent is replaced by its mean."""

    @staticmethod
    def forward(ctx, x, target):
        residual = x - target
        ctx.save_for_backward(2 * residual)
        return residual**2

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        scale = grad.float().mean().item()
        return slope * scale, None


class SquareByHand(Function):
    """Square with its own jvp, ten times the true one. https://github.com/pytorch/pytorch/issues/192985: compiled, the jvp of the class is dropped."""

    @staticmethod
    def forward(x):
        return x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad * 20 * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 20 * ctx.saved_tensors[0]


@custom_op("strangers_reports::swish_pair_backward", mutates_args=())
def swish_pair_backward(grad_y: Tensor, grad_gate: Tensor, x: Tensor) -> Tensor:
    """Cotangent of swish_pair."""
    read = []
    for grad in (grad_y, grad_gate):
        grad = grad.contiguous() if 0 in grad.stride() else grad
        memory = torch.empty(0, dtype=grad.dtype).set_(grad.untyped_storage())[grad.storage_offset() :]
        values = grad.new_zeros(grad.numel())
        values[: memory.numel()] = memory[: grad.numel()]
        read.append(values.reshape(x.shape))
    gate = torch.sigmoid(x)
    slope = gate * (1 - gate)
    return (read[0] * (gate + x * slope) + read[1] * slope).contiguous()


@swish_pair_backward.register_fake
def _(grad_y, grad_gate, x):
    return x.new_empty(x.shape)


@custom_op("strangers_reports::swish_pair", mutates_args=())
def swish_pair(x: Tensor) -> tuple[Tensor, Tensor]:
    """Swish and its gate. https://github.com/pytorch/pytorch/pull/195210: the kernel of the backward assumes that both cotangents are laid out as the outputs are, which "neither gradcheck nor opcheck can surface"."""
    gate = torch.sigmoid(x)
    return (x * gate).contiguous(), gate.contiguous()


@swish_pair.register_fake
def _(x):
    return x.new_empty(x.shape), x.new_empty(x.shape)


def _swish_pair_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


swish_pair.register_autograd(
    lambda ctx, grad_y, grad_gate: swish_pair_backward(grad_y, grad_gate, ctx.saved_tensors[0]),
    setup_context=_swish_pair_setup,
)


class HeadLoss(Function):
    """Mean cross entropy of a linear layer. https://github.com/linkedin/Liger-Kernel/issues/930: a gradient is made only where the rows require one, and read in any case, so evaluation raises UnboundLocalError."""

    @staticmethod
    def forward(ctx, hidden, weight, target):
        logits = hidden @ weight
        slope = torch.softmax(logits, -1) - torch.nn.functional.one_hot(target, logits.shape[-1])
        slope = slope / logits.shape[0]
        if hidden.requires_grad:
            grad_hidden = slope @ weight.t()
            grad_weight = hidden.t() @ slope
        ctx.save_for_backward(grad_hidden, grad_weight)
        return torch.nn.functional.cross_entropy(logits, target)

    @staticmethod
    def backward(ctx, grad):
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad, grad_weight * grad, None


class MaskedTokenLoss(Function):
    """Cross entropy a token, some ignored. https://github.com/linkedin/Liger-Kernel/issues/968: with reduction none the whole gradient is scaled by the first token's cotangent, so it is zero if that token is masked."""

    @staticmethod
    def forward(ctx, hidden, weight, target):
        logits = hidden @ weight
        kept = target != -100
        slope = torch.softmax(logits, -1) - torch.nn.functional.one_hot(target.clamp(min=0), logits.shape[-1])
        slope = slope * kept.unsqueeze(-1)
        ctx.save_for_backward(slope @ weight.t(), hidden.t() @ slope)
        return torch.nn.functional.cross_entropy(logits, target, ignore_index=-100, reduction="none")

    @staticmethod
    def backward(ctx, grad):
        grad_hidden, grad_weight = ctx.saved_tensors
        first = grad.reshape(-1)[0]
        return grad_hidden * first, grad_weight * first, None


@custom_op("strangers_reports::triangle_attention", mutates_args=())
def triangle_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention. https://github.com/NVIDIA/cuEquivariance/issues/223: the fake kernel keeps the layout of its argument, the kernel returns contiguous memory, and compiled code asserts the first."""
    return (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).contiguous()


@triangle_attention.register_fake
def _(q, k, v):
    return torch.empty_like(q)


class Scan(Function):
    """Linear recurrence. https://github.com/state-spaces/mamba/issues/239: forward takes ctx, so torch.vmap refuses it."""

    @staticmethod
    def forward(ctx, x, decay):
        ctx.decay = decay
        states = []
        for row in x.unbind(0):
            states.append(row if not states else decay * states[-1] + row)
        return torch.stack(states) if states else x.clone()

    @staticmethod
    def backward(ctx, grad):
        sums = []
        for row in reversed(grad.unbind(0)):
            sums.append(row if not sums else ctx.decay * sums[-1] + row)
        return torch.stack(sums[::-1]) if sums else grad.clone(), None


@custom_op("strangers_reports::stored_gradient_loss", mutates_args=())
def stored_gradient_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross entropy. https://github.com/linkedin/Liger-Kernel/pull/1251: the kernel stores the gradient in its input, past the version counter, so that the softmax before it differentiates what it did not compute."""
    loss = torch.nn.functional.cross_entropy(logits, target)
    slope = torch.softmax(logits, -1) - torch.nn.functional.one_hot(target, logits.shape[-1])
    logits.detach().numpy()[...] = (slope / logits.shape[0]).detach().numpy()
    return loss


@stored_gradient_loss.register_fake
def _(logits, target):
    return logits.new_empty(())


def _stored_gradient_loss_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


stored_gradient_loss.register_autograd(
    lambda ctx, grad: (grad * ctx.saved_tensors[0], None), setup_context=_stored_gradient_loss_setup
)
