"""Sound functions as their authors write them, each with a call: of none is anything broken in plain training."""

from __future__ import annotations

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint


class LSQ(Function):
    """Learned step size quantisation (Esser et al., 2020)."""

    @staticmethod
    def forward(ctx, x, step, low, high):
        ctx.save_for_backward(x, step)
        ctx.bounds = low, high
        return (x / step).clamp(low, high).round() * step

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        low, high = ctx.bounds
        q = x / step
        inside = (q > low) & (q < high)
        dx = ds = None
        if ctx.needs_input_grad[0]:
            dx = g * inside
        if ctx.needs_input_grad[1]:
            slope = torch.where(inside, q.round() - q, q.clamp(low, high))
            ds = (g * slope).sum().reshape(step.shape) / (x.numel() * high) ** 0.5
        return dx, ds, None, None


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None


class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        r = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, weight, r)
        return x * r * weight

    @staticmethod
    def backward(ctx, g):
        x, weight, r = ctx.saved_tensors
        hat, h = x * r, g * weight
        return r * (h - hat * (h * hat).mean(-1, keepdim=True)), (g * hat).flatten(0, -2).sum(0), None


class SwiGLU(Function):
    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return nn.functional.silu(gate) * up

    @staticmethod
    def backward(ctx, g):
        gate, up = ctx.saved_tensors
        s = gate.sigmoid()
        return g * up * s * (1 + gate * (1 - s)), g * gate * s


class FusedCrossEntropy(Function):
    """The gradient is made in forward."""

    @staticmethod
    def forward(ctx, logits, target):
        log_p = logits.log_softmax(-1)
        grad = log_p.exp()
        grad[torch.arange(len(target)), target] -= 1
        ctx.save_for_backward(grad / len(target))
        return nn.functional.nll_loss(log_p, target)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (grad,) = ctx.saved_tensors
        return g * grad, None


class MaskedRelu(Function):
    @staticmethod
    def forward(ctx, x):
        mask = x > 0
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class BinarizeSTE(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1)


class ArctanSpike(Function):
    @staticmethod
    def forward(ctx, v, threshold=1.0):
        ctx.save_for_backward(v)
        ctx.threshold = threshold
        return (v > threshold).to(v.dtype)

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (1 + (torch.pi * (v - ctx.threshold)) ** 2), None


class StochasticRound(Function):
    @staticmethod
    def forward(ctx, x):
        low = x.floor()
        return low + (torch.rand_like(x) < x - low).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g


class Dropout(Function):
    @staticmethod
    def forward(ctx, x, p):
        mask = (torch.rand_like(x) >= p).to(x.dtype) / (1 - p)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask, None


class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        return g.new_zeros(ctx.rows).index_add(0, ids.flatten(), g.reshape(-1, ctx.rows[1])), None


class ScatterSum(Function):
    @staticmethod
    def forward(ctx, src, index, size):
        ctx.save_for_backward(index)
        return src.new_zeros(size, *src.shape[1:]).index_add(0, index, src)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g[index], None, None


class Recomputed(Function):
    """A checkpoint by hand, with the state of the generator on ctx."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.state = torch.get_rng_state()
        with torch.no_grad():
            return nn.functional.dropout(torch.tanh(x @ w), 0.5)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, w = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            y = nn.functional.dropout(torch.tanh(x @ w), 0.5)
        return torch.autograd.grad(y, (x, w), g)


class TernaryWeight(Function):
    @staticmethod
    def forward(ctx, w, scale):
        kept = (w.abs() > 0.3).to(w.dtype) * w.sign()
        ctx.save_for_backward(kept)
        return kept * scale

    @staticmethod
    def backward(ctx, g):
        (kept,) = ctx.saved_tensors
        return g, (g * kept).sum().reshape(())


@torch.library.custom_op("gradspec_sound::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


cube.register_fake(torch.empty_like)
cube.register_autograd(
    lambda ctx, g: 3 * ctx.saved_tensors[0].square() * g,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


class NormLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, 1.0, 2.0]))

    def forward(self, x):
        return RMSNorm.apply(x, self.weight)


class GatedBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(3, 3, bias=False) for _ in range(3))

    def forward(self, x):
        return self.down(SwiGLU.apply(self.gate(x), self.up(x)))


class Straight(nn.Module):
    """The estimator written with detach."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.1))

    def forward(self, x):
        return x * self.scale + (x.round() - x * self.scale).detach()


class Momentum(nn.Module):
    """A teacher without a gradient, frozen, and a student."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = nn.Linear(3, 2), nn.Linear(3, 2).requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            goal = self.teacher(x)
        return (self.student(x) - goal).square().mean()


def straight_through(x):
    return x + (x.sign() - x).detach()


def rounded_twice(x):
    return RoundSTE.apply(2 * x) / 2


def mean_squared(x, target):
    return nn.functional.mse_loss(x, target.detach())


def connectionist(log_probs, targets):
    lengths = torch.full((2,), 6), torch.full((2,), 3)
    return nn.functional.ctc_loss(log_probs.log_softmax(-1), targets, *lengths)


def checkpointed(x, w):
    return checkpoint(lambda a, b: torch.tanh(a @ b), x, w, use_reentrant=False)


def listed(xs):
    return torch.cat([RMSNorm.apply(x, x.new_ones(3)) for x in xs])


def _made(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make()


X = "randn(4, 3)"
#: Each function by name, with a call, and whether something of it can only be asked.
SOUND = {
    "LSQ": (LSQ, f"({X}, tensor(0.3), -4, 3)", True),
    "reversal": (Reverse, f"({X}, 0.5)", True),
    "RMSNorm": (RMSNorm, f"({X}, rand(3))", False),
    "RMSNorm, a layer": (NormLayer(), f"({X},)", False),
    "SwiGLU": (SwiGLU, f"({X}, {X})", False),
    "SwiGLU, a block": (_made(GatedBlock), f"({X},)", False),
    "fused cross entropy": (FusedCrossEntropy, "(randn(4, 5), randint(0, 5, (4,)))", False),
    "custom operator": (cube, f"({X},)", False),
    "BatchNorm in a Sequential": (
        _made(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))),
        "(randn(6, 3),)",
        False,
    ),
    "BatchNorm in evaluation": (
        _made(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()),
        f"({X},)",
        False,
    ),
    "a convolution before InstanceNorm": (
        _made(lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.InstanceNorm1d(3), nn.Tanh())),
        "(randn(2, 2, 6),)",
        False,
    ),
    "ReLU of torch": (torch.relu, f"({X},)", False),
    "ReLU of torch at zeros": (torch.relu, "(zeros(4, 3),)", False),
    "LayerNorm": (nn.LayerNorm(3), f"({X},)", False),
    "CTC": (connectionist, "(randn(6, 2, 5), randint(1, 5, (2, 3)))", False),
    "MSE of a target without gradient": (mean_squared, f"({X}, {X})", True),
    "MSE of a target, the input marked": (mean_squared, f"(randn(4, 3, requires_grad=True), {X})", False),
    "round, straight through": (RoundSTE, f"({X},)", True),
    "round in a plain function": (rounded_twice, f"({X},)", True),
    "sign, straight through, by detach": (straight_through, f"({X},)", True),
    "binarise": (BinarizeSTE, f"({X},)", True),
    "spike": (ArctanSpike, "(randn(8),)", True),
    "saved mask": (MaskedRelu, f"({X},)", False),
    "stochastic rounding": (StochasticRound, f"({X},)", True),
    "dropout": (Dropout, f"({X}, 0.4)", False),
    "embedding": (Embedding, "(randn(5, 3), tensor([[0, 2], [2, 4]]))", False),
    "scatter": (ScatterSum, "(randn(5, 2), tensor([0, 2, 0, 1, 2]), 4)", False),
    "recomputed": (Recomputed, "(randn(4, 3), randn(3, 3))", False),
    "ternary weights": (TernaryWeight, "(randn(8), tensor(0.7))", True),
    "a frozen teacher": (_made(Momentum), f"({X},)", True),
    "a scale behind detach": (Straight(), f"({X},)", True),
    "checkpoint of torch": (checkpointed, "(randn(4, 3), randn(3, 3))", False),
    "a list of tensors": (listed, "([randn(2, 3), randn(1, 3)],)", False),
    "multi-head attention": (
        lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v),
        "(randn(2, 3, 4), randn(2, 3, 4), randn(2, 3, 4))",
        False,
    ),
    "an LSTM cell": (_made(lambda: nn.LSTMCell(3, 2)), "(randn(4, 3),)", False),
    "softmax with a shift": (lambda x, b: (x + b).softmax(-1), f"({X}, tensor(0.5))", False),
}
