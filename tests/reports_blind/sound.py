"""Functions, operators and modules that are right, as authors of packages write them; sound.toml says after which.

Where the gradient is meant to differ from the derivative, the docstring says what it is instead.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.library import custom_op

Grads = tuple[Tensor | None, ...]


# Norms.


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
        r = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, weight, r)
        return x * r * weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> Grads:
        x, weight, r = ctx.saved_tensors
        hat, g = x * r, dy * weight
        dx = r * (g - hat * (g * hat).mean(-1, keepdim=True))
        return dx, (dy * hat).flatten(0, -2).sum(0), None


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, eps: float = 1e-5) -> Tensor:
        var, mean = torch.var_mean(x, -1, unbiased=False, keepdim=True)
        rstd = (var + eps).rsqrt()
        hat = (x - mean) * rstd
        ctx.save_for_backward(hat, rstd, weight)
        y = hat * weight
        return y if bias is None else y + bias

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> Grads:
        hat, rstd, weight = ctx.saved_tensors
        g = dy * weight
        dx = rstd * (g - g.mean(-1, keepdim=True) - hat * (g * hat).mean(-1, keepdim=True))
        dbias = dy.flatten(0, -2).sum(0) if ctx.needs_input_grad[2] else None
        return dx, (dy * hat).flatten(0, -2).sum(0), dbias, None


class GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float = 1e-5) -> Tensor:
        rows = x.reshape(len(x), groups, -1)
        var, mean = torch.var_mean(rows, -1, unbiased=False, keepdim=True)
        rstd = (var + eps).rsqrt()
        hat = ((rows - mean) * rstd).view(x.shape)
        ctx.save_for_backward(hat, rstd, gamma)
        return hat * gamma[:, None] + beta[:, None]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> Grads:
        hat, rstd, gamma = ctx.saved_tensors
        g = (dy * gamma[:, None]).reshape(len(dy), rstd.shape[1], -1)
        h = hat.reshape(g.shape)
        dx = rstd * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
        return dx.view(hat.shape), (dy * hat).sum((0, 2)), dy.sum((0, 2)), None, None


class _BatchNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, var: Tensor, eps: float) -> Tensor:
        rstd = (var + eps).rsqrt()
        hat = (x - mean) * rstd
        ctx.save_for_backward(hat, rstd, gamma)
        return hat * gamma + beta

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> Grads:
        """Mean and variance are those of x, so the gradient through them is part of that of x."""
        hat, rstd, gamma = ctx.saved_tensors
        dgamma, dbeta = (dy * hat).sum(0), dy.sum(0)
        dx = gamma * rstd * (dy - dbeta / len(dy) - hat * dgamma / len(dy))
        return dx, dgamma, dbeta, None, None, None


class BatchNorm(nn.Module):
    def __init__(self, width: int, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            hat = (x - self.running_mean) * (self.running_var + self.eps).rsqrt()
            return hat * self.weight + self.bias
        with torch.no_grad():
            var, mean = torch.var_mean(x, 0, unbiased=False)
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * len(x) / (len(x) - 1), self.momentum)
        return _BatchNormFunction.apply(x, self.weight, self.bias, mean, var, self.eps)


class WeightNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, g: Tensor) -> Tensor:
        ctx.save_for_backward(v, g)
        return v * (g / v.norm(dim=1, keepdim=True))

    @staticmethod
    def backward(ctx: Any, dw: Tensor) -> Grads:
        v, g = ctx.saved_tensors
        norm = v.norm(dim=1, keepdim=True)
        u = v / norm
        dg = (dw * u).sum(1, keepdim=True)
        return g / norm * (dw - dg * u), dg


# Activations and gates.


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a * a.sigmoid() * b

    @staticmethod
    def backward(ctx: Any, dc: Tensor) -> Grads:
        a, b = ctx.saved_tensors
        s = a.sigmoid()
        return dc * b * s * (1 + a * (1 - s)), dc * a * s


class GeGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return nn.functional.gelu(a, approximate="tanh") * b

    @staticmethod
    def backward(ctx: Any, dc: Tensor) -> Grads:
        a, b = ctx.saved_tensors
        k = (2 / torch.pi) ** 0.5
        t = torch.tanh(k * (a + 0.044715 * a**3))
        slope = 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * k * (1 + 3 * 0.044715 * a * a)
        return dc * b * slope, dc * 0.5 * a * (1 + t)


class MemoryEfficientSwish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s * (1 + x * (1 - s)))


class MemoryEfficientMish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * nn.functional.softplus(x).tanh()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        t = nn.functional.softplus(x).tanh()
        return grad_output * (t + x * x.sigmoid() * (1 - t * t))


class SquaredReLU(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.clamp(min=0).square()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.clamp(min=0)

    @staticmethod
    def jvp(ctx: Any, x_dot: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return x_dot * 2 * x.clamp(min=0)


class _SnakeFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Tensor) -> Tensor:
        ctx.save_for_backward(x, alpha)
        return x + (alpha * x).sin().square() / alpha

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, alpha = ctx.saved_tensors
        wave = (2 * alpha * x).sin()
        dalpha = x * wave / alpha - (alpha * x).sin().square() / alpha**2
        return g * (1 + wave), (g * dalpha).sum((0, 2), keepdim=True)


class Snake(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return _SnakeFunction.apply(x, self.alpha)


class DropoutWithMask(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, p: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - p)
        return x * mask * ctx.scale

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        (mask,) = ctx.saved_tensors
        return grad_output * mask * ctx.scale, None, None


# Losses.


class CrossEntropy(torch.autograd.Function):
    """The mean over the tokens that are not ignored, with label smoothing."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, smoothing: float, ignore_index: int = -100) -> Tensor:
        kept = target != ignore_index
        rows = torch.arange(len(target))
        logp = logits.log_softmax(-1)
        goal = torch.full_like(logp, smoothing / logits.shape[-1])
        goal[rows, target.clamp(min=0)] += 1 - smoothing
        count = kept.sum().clamp(min=1)
        ctx.save_for_backward((logp.exp() - goal) * kept[:, None] / count)
        return -((goal * logp).sum(-1) * kept).sum() / count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        (slopes,) = ctx.saved_tensors
        return grad_output * slopes, None, None, None


class SigmoidFocalLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, gamma: float, alpha: float) -> Tensor:
        ctx.save_for_backward(logits, target)
        ctx.rest = gamma, alpha
        s = torch.where(target > 0, logits, -logits)
        return -(alpha * target + (1 - alpha) * (1 - target)) * (-s).sigmoid() ** gamma * nn.functional.logsigmoid(s)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        logits, target = ctx.saved_tensors
        gamma, alpha = ctx.rest
        sign = 2 * target - 1
        s = logits * sign
        p = s.sigmoid()
        slope = gamma * p * nn.functional.logsigmoid(s) - (1 - p)
        weight = alpha * target + (1 - alpha) * (1 - target)
        return g * weight * (-s).sigmoid() ** gamma * slope * sign, None, None, None


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        top = x.amax(dim, keepdim=True)
        out = (x - top).exp().sum(dim, keepdim=True).log() + top
        ctx.save_for_backward(x, out)
        ctx.dim = dim
        return out.squeeze(dim)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, out = ctx.saved_tensors
        return g.unsqueeze(ctx.dim) * (x - out).exp(), None


class ChamferDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        d = (x[:, None] - y[None]).square().sum(-1)
        to_y, near_y = d.min(1)
        to_x, near_x = d.min(0)
        ctx.save_for_backward(x, y, near_y, near_x)
        return to_y, to_x

    @staticmethod
    def backward(ctx: Any, g_y: Tensor, g_x: Tensor) -> Grads:
        x, y, near_y, near_x = ctx.saved_tensors
        of_x = 2 * g_y[:, None] * (x - y[near_y])
        of_y = 2 * g_x[:, None] * (y - x[near_x])
        return of_x.index_add(0, near_x, -of_y), of_y.index_add(0, near_y, -of_x)


class CosineSimilarity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        a, b = ctx.saved_tensors
        na, nb = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
        u, w = a / na, b / nb
        c, g = (u * w).sum(-1, keepdim=True), g[..., None]
        return g * (w - c * u) / na, g * (u - c * w) / nb


# Gradients that are meant to differ from the derivative.


class GradientReversal(torch.autograd.Function):
    """The identity, whose gradient is that of -strength x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        return -ctx.strength * grad_output, None


class ScaleGradient(torch.autograd.Function):
    """The identity, whose gradient is that of factor x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        return grad_output * ctx.factor, None


class ClipGradientNorm(torch.autograd.Function):
    """The identity, whose gradient is shortened to a given length."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, longest: float) -> Tensor:
        ctx.longest = longest
        return x.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        return grad_output * (ctx.longest / grad_output.norm().clamp(min=1e-12)).clamp(max=1), None


class AddAuxiliaryLoss(torch.autograd.Function):
    """The first argument; the second, a loss, gets the gradient `scale` as if it were added to the final loss."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, loss: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(loss)
        ctx.scale = scale
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        (loss,) = ctx.saved_tensors
        return grad_output, torch.full_like(loss, ctx.scale), None


class RoundSTE(torch.autograd.Function):
    """Rounding, with the gradient of the identity."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output


class SignSTE(torch.autograd.Function):
    """The sign, with the gradient of a clamp to [-1, 1]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1)


class LSQ(torch.autograd.Function):
    """Quantisation with a learned step: straight through within the range, the step's gradient scaled by `gain`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, step: Tensor, gain: float, low: int, high: int) -> Tensor:
        ctx.save_for_backward(x, step)
        ctx.rest = gain, low, high
        return (x / step).clamp(low, high).round() * step

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, step = ctx.saved_tensors
        gain, low, high = ctx.rest
        q = x / step
        inside = (q >= low) & (q <= high)
        slope = q.clamp(low, high).round() - q * inside
        return g * inside, (g * slope).sum() * gain, None, None, None


class PACT(torch.autograd.Function):
    """Quantised clip to [0, alpha], with the gradient of the clip alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Tensor, bits: int) -> Tensor:
        ctx.save_for_backward(x, alpha)
        scale = (2**bits - 1) / alpha
        return torch.minimum(x.clamp(min=0), alpha).mul(scale).round() / scale

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, alpha = ctx.saved_tensors
        over = x >= alpha
        return g * ((x > 0) & ~over), (g * over).sum().view_as(alpha), None


class GumbelOneHot(torch.autograd.Function):
    """A one-hot sample of given noise, with the gradient of the softmax at the same noise."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, noise: Tensor, tau: float) -> Tensor:
        p = ((logits + noise) / tau).softmax(-1)
        ctx.save_for_backward(p)
        ctx.tau = tau
        return torch.zeros_like(p).scatter_(-1, p.argmax(-1, keepdim=True), 1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(-1, keepdim=True)) / ctx.tau, None, None


class VectorQuantize(torch.autograd.Function):
    """The nearest entries of a codebook: straight through to x, and the rows that were taken for the codebook."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, codebook: Tensor) -> tuple[Tensor, Tensor]:
        index = torch.cdist(x, codebook).argmin(1)
        ctx.save_for_backward(index)
        ctx.rows = len(codebook)
        ctx.mark_non_differentiable(index)
        return codebook[index], index

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor | None) -> Grads:
        (index,) = ctx.saved_tensors
        return g, g.new_zeros(ctx.rows, g.shape[1]).index_add(0, index, g)


class AtanSpike(torch.autograd.Function):
    """A step, with the gradient of atan(pi/2 alpha x) / pi."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        (x,) = ctx.saved_tensors
        return grad_output * (ctx.alpha / 2) / (1 + (torch.pi / 2 * ctx.alpha * x) ** 2), None


class SigmoidSpike(torch.autograd.Function):
    """A step, with the gradient of sigmoid(alpha x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        (x,) = ctx.saved_tensors
        s = (ctx.alpha * x).sigmoid()
        return grad_output * ctx.alpha * s * (1 - s), None


class TriangleSpike(torch.autograd.Function):
    """A step, with a triangle of a given height and half the width one as its slope."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, height: float = 1.0) -> Tensor:
        ctx.save_for_backward(x)
        ctx.height = height
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        (x,) = ctx.saved_tensors
        return grad_output * ctx.height * (1 - x.abs()).clamp(min=0), None


class LeakyIntegrateAndFire(nn.Module):
    """Leaky neurons over time that reset by subtraction; a spike has the gradient of a sigmoid."""

    def __init__(self, beta: float = 0.9, threshold: float = 1.0) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(beta))
        self.threshold = threshold

    def forward(self, current: Tensor) -> Tensor:
        v, spikes = torch.zeros_like(current[0]), []
        for i in current:
            v = self.beta * v + i
            spikes.append(SigmoidSpike.apply(v - self.threshold, 4.0))
            v = v - spikes[-1].detach() * self.threshold
        return torch.stack(spikes)


# Memory: what is computed again.


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, run: Callable[..., Tensor], *args: Tensor) -> Tensor:
        ctx.run = run
        ctx.save_for_backward(*args)
        return run(*args)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        wanted = ctx.needs_input_grad[1:]
        inputs = [t.detach().requires_grad_(need) for t, need in zip(ctx.saved_tensors, wanted, strict=True)]
        with torch.enable_grad():
            y = ctx.run(*inputs)
        grads = iter(torch.autograd.grad(y, [t for t in inputs if t.requires_grad], grad_output))
        return None, *(next(grads) if need else None for need in wanted)


def checkpointed_mlp(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    return Checkpoint.apply(lambda x, w1, w2: torch.tanh(x @ w1) @ w2, x, w1, w2)


class InvertibleCoupling(torch.autograd.Function):
    """y1 = x1 + tanh(x2 f), y2 = x2 + tanh(y1 g); backward recovers the inputs from the outputs."""

    @staticmethod
    def forward(ctx: Any, x1: Tensor, x2: Tensor, f: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        y1 = x1 + torch.tanh(x2 @ f)
        y2 = x2 + torch.tanh(y1 @ g)
        ctx.save_for_backward(y1, y2, f, g)
        return y1, y2

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy1: Tensor, dy2: Tensor) -> Grads:
        y1, y2, f, g = ctx.saved_tensors
        at_y1 = torch.tanh(y1 @ g)
        x2 = y2 - at_y1
        inner = dy2 * (1 - at_y1**2)
        dg, dy1 = y1.mT @ inner, dy1 + inner @ g.mT
        outer = dy1 * (1 - torch.tanh(x2 @ f) ** 2)
        return dy1, dy2 + outer @ f.mT, x2.mT @ outer, dg


# Gathering and sampling.


class RotaryEmbedding(torch.autograd.Function):
    @staticmethod
    def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return RotaryEmbedding._turn(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        cos, sin = ctx.saved_tensors
        return RotaryEmbedding._turn(g, cos, -sin), None, None


class BilinearSample(torch.autograd.Function):
    """Values of an image (h, w) at points (n, 2) of row and column, zero outside."""

    @staticmethod
    def _corners(image: Tensor, points: Tensor) -> list[tuple[Tensor, Tensor, Tensor, int, int]]:
        low = points.detach().floor()
        top, left = low.long().unbind(1)
        h, w = image.shape
        found = []
        for dr, dc in ((0, 0), (0, 1), (1, 0), (1, 1)):
            r, c = top + dr, left + dc
            seen = (r >= 0) & (r < h) & (c >= 0) & (c < w)
            found.append((r.clamp(0, h - 1), c.clamp(0, w - 1), seen, dr, dc))
        return found

    @staticmethod
    def forward(ctx: Any, image: Tensor, points: Tensor) -> Tensor:
        ctx.save_for_backward(image, points)
        y, x = (points - points.floor()).unbind(1)
        out = torch.zeros_like(y)
        for r, c, seen, dr, dc in BilinearSample._corners(image, points):
            out += image[r, c] * seen * (y if dr else 1 - y) * (x if dc else 1 - x)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        image, points = ctx.saved_tensors
        y, x = (points - points.floor()).unbind(1)
        of_image, of_y, of_x = torch.zeros_like(image), torch.zeros_like(y), torch.zeros_like(x)
        for r, c, seen, dr, dc in BilinearSample._corners(image, points):
            wy, wx = (y if dr else 1 - y), (x if dc else 1 - x)
            of_image.index_put_((r, c), g * seen * wy * wx, accumulate=True)
            value = image[r, c] * seen * g
            of_y += value * wx * (1 if dr else -1)
            of_x += value * wy * (1 if dc else -1)
        return of_image, torch.stack([of_y, of_x], 1)


class SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, segment: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(segment)
        return x.new_zeros(count, *x.shape[1:]).index_add_(0, segment, x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        (segment,) = ctx.saved_tensors
        return g[segment], None, None


class ScatterMax(torch.autograd.Function):
    """The largest of each segment and where it was; an empty segment has the value zero and the index len(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, segment: Tensor, count: int) -> tuple[Tensor, Tensor]:
        best, where = x.new_zeros(count), torch.full((count,), len(x))
        for i, s in enumerate(segment.tolist()):
            if where[s] == len(x) or x[i] > best[s]:
                best[s], where[s] = x[i], i
        ctx.save_for_backward(where)
        ctx.length = len(x)
        ctx.mark_non_differentiable(where)
        return best, where

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor | None) -> Grads:
        (where,) = ctx.saved_tensors
        return g.new_zeros(ctx.length + 1).index_add(0, where, g)[:-1], None, None


class Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = len(weight)
        return weight[index]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        (index,) = ctx.saved_tensors
        flat = g.reshape(-1, g.shape[-1])
        return g.new_zeros(ctx.rows, g.shape[-1]).index_add(0, index.flatten(), flat), None


class TopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        values, index = x.topk(k, -1)
        ctx.save_for_backward(index)
        ctx.size = x.shape[-1]
        ctx.mark_non_differentiable(index)
        return values, index

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor | None) -> Grads:
        (index,) = ctx.saved_tensors
        return g.new_zeros(*g.shape[:-1], ctx.size).scatter(-1, index, g), None


class MaxPool1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int) -> Tensor:
        windows = x[..., : x.shape[-1] // size * size].unflatten(-1, (-1, size))
        values, at = windows.max(-1)
        ctx.save_for_backward(at + torch.arange(windows.shape[-2]) * size)
        ctx.size = x.shape[-1]
        return values

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        (index,) = ctx.saved_tensors
        return g.new_zeros(*g.shape[:-1], ctx.size).scatter(-1, index, g), None


# Convolutions, attention and linear layers.


class UnfoldConv2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        columns = nn.functional.unfold(x, weight.shape[2:])
        y = weight.flatten(1) @ columns + bias[:, None]
        return y.unflatten(-1, (x.shape[2] - weight.shape[2] + 1, -1))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, weight = ctx.saved_tensors
        g = g.flatten(2)
        columns = nn.functional.unfold(x, weight.shape[2:])
        dx = nn.functional.fold(weight.flatten(1).T @ g, x.shape[2:], weight.shape[2:])
        return dx, (g @ columns.mT).sum(0).view_as(weight), g.sum((0, 2))


class CausalConv1d(torch.autograd.Function):
    """Depthwise convolution of x (channels, time) after a state (channels, k - 1); also returns the next state."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        seen = torch.cat([state, x], 1)
        ctx.save_for_backward(x, weight, state)
        k = weight.shape[1]
        return (seen.unfold(1, k, 1) * weight[:, None]).sum(-1), seen[:, seen.shape[1] - (k - 1) :].clone()

    @staticmethod
    def backward(ctx: Any, dy: Tensor, dnext: Tensor) -> Grads:
        x, weight, state = ctx.saved_tensors
        seen, (n, k) = torch.cat([state, x], 1), (x.shape[1], weight.shape[1])
        dweight = torch.stack([(dy * seen[:, j : j + n]).sum(1) for j in range(k)], 1)
        dseen = nn.functional.pad(dnext, (n, 0))
        for j in range(k):
            dseen = dseen + nn.functional.pad(dy * weight[:, j : j + 1], (j, k - 1 - j))
        return dseen[:, k - 1 :], dweight, dseen[:, : k - 1]


class LinearAttention(torch.autograd.Function):
    """Causal attention without a softmax, as a recurrence of a state that decays; backward is a second recurrence."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, decay: float) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.decay = decay
        state, out = q.new_zeros(k.shape[1], v.shape[1]), []
        for qt, kt, vt in zip(q, k, v, strict=True):
            state = decay * state + kt[:, None] * vt
            out.append(qt @ state)
        return torch.stack(out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        q, k, v = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        state = q.new_zeros(k.shape[1], v.shape[1])
        for t in range(len(q)):
            state = ctx.decay * state + k[t][:, None] * v[t]
            dq[t] = state @ g[t]
        dstate = torch.zeros_like(state)
        for t in reversed(range(len(q))):
            dstate = ctx.decay * dstate + q[t][:, None] * g[t]
            dk[t], dv[t] = dstate @ v[t], k[t] @ dstate
        return dq, dk, dv, None


class QuantizedLinear(torch.autograd.Function):
    """A frozen weight of integers and a scale for each row; only x and the bias are trained."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight, scale)
        y = x @ (weight.to(x.dtype) * scale[:, None]).T
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        weight, scale = ctx.saved_tensors
        dbias = g.flatten(0, -2).sum(0) if ctx.needs_input_grad[3] else None
        return g @ (weight.to(g.dtype) * scale[:, None]), None, None, dbias


class LoRALinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, frozen: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x, frozen, a, b)
        ctx.scale = scale
        return x @ frozen.T + (x @ a.T) @ b.T * scale

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, frozen, a, b = ctx.saved_tensors
        through = g @ b * ctx.scale
        db = (g.flatten(0, -2).T @ (x @ a.T).flatten(0, -2)) * ctx.scale
        return g @ frozen + through @ a, None, through.flatten(0, -2).T @ x.flatten(0, -2), db, None


# Solvers.


class CholeskySolve(torch.autograd.Function):
    """x of A x = b for a symmetric positive definite A, of which both triangles count."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        factor = torch.linalg.cholesky((a + a.mT) / 2)
        x = torch.cholesky_solve(b, factor)
        ctx.save_for_backward(factor, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        factor, x = ctx.saved_tensors
        db = torch.cholesky_solve(g, factor)
        da = -db @ x.mT
        return (da + da.mT) / 2, db


class FixedPoint(torch.autograd.Function):
    """z = tanh(z W + x) for a small W; backward solves the adjoint equation by iteration."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(200):
            z = torch.tanh(z @ w + x)
        ctx.save_for_backward(z, w)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        z, w = ctx.saved_tensors
        slope = 1 - z * z
        u = g
        for _ in range(200):
            u = g + (u * slope) @ w.mT
        return u * slope, z.mT @ (u * slope)


class EulerAdjoint(torch.autograd.Function):
    """Steps of Euler for y' = tanh(y W) - y; backward goes back step by step over the states that were kept."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, w: Tensor, steps: int, h: float) -> Tensor:
        states = [y]
        for _ in range(steps):
            states.append(states[-1] + h * (torch.tanh(states[-1] @ w) - states[-1]))
        ctx.save_for_backward(w, *states[:-1])
        ctx.h = h
        return states[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        w, *states = ctx.saved_tensors
        dw = torch.zeros_like(w)
        for y in reversed(states):
            inner = ctx.h * g * (1 - torch.tanh(y @ w) ** 2)
            dw += y.mT @ inner
            g = g + inner @ w.mT - ctx.h * g
        return g, dw, None, None


class Sinkhorn(torch.autograd.Function):
    """Transport plan of uniform masses after some steps; backward differentiates the same steps again."""

    @staticmethod
    def _plan(cost: Tensor, eps: float, steps: int) -> Tensor:
        n, m = cost.shape
        f, g = cost.new_zeros(n, 1), cost.new_zeros(1, m)
        for _ in range(steps):
            f = -eps * ((g - cost) / eps).logsumexp(1, keepdim=True)
            g = -eps * ((f - cost) / eps).logsumexp(0, keepdim=True)
        return ((f + g - cost) / eps).exp() / m

    @staticmethod
    def forward(ctx: Any, cost: Tensor, eps: float, steps: int) -> Tensor:
        ctx.save_for_backward(cost)
        ctx.rest = eps, steps
        return Sinkhorn._plan(cost, eps, steps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Grads:
        (cost,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = cost.detach().requires_grad_()
            plan = Sinkhorn._plan(inner, *ctx.rest)
        return *torch.autograd.grad(plan, inner, grad_output), None, None


class Sparsemax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ordered = x.sort(-1, descending=True).values
        ranks = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
        sums = ordered.cumsum(-1) - 1
        size = (ranks * ordered > sums).sum(-1, keepdim=True)
        y = (x - sums.gather(-1, size - 1) / size).clamp(min=0)
        ctx.save_for_backward(y > 0)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (support,) = ctx.saved_tensors
        mean = (g * support).sum(-1, keepdim=True) / support.sum(-1, keepdim=True)
        return torch.where(support, g - mean, 0.0)


class EntmaxBisect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float) -> Tensor:
        z = x * (alpha - 1)
        top = z.amax(-1, keepdim=True)
        low, high = top - 1, top - x.shape[-1] ** (1 - alpha)
        for _ in range(60):
            middle = (low + high) / 2
            over = (z - middle).clamp(min=0).pow(1 / (alpha - 1)).sum(-1, keepdim=True) >= 1
            low, high = torch.where(over, middle, low), torch.where(over, high, middle)
        p = (z - low).clamp(min=0).pow(1 / (alpha - 1))
        p = p / p.sum(-1, keepdim=True)
        ctx.save_for_backward(p)
        ctx.alpha = alpha
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Grads:
        (p,) = ctx.saved_tensors
        s = torch.where(p > 0, p, 1.0).pow(2 - ctx.alpha) * (p > 0)
        return s * (g - (g * s).sum(-1, keepdim=True) / s.sum(-1, keepdim=True)), None


def kabsch(p: Tensor, q: Tensor) -> Tensor:
    """The rotation that takes the points p to q best."""
    u, _, vh = torch.linalg.svd((p - p.mean(0)).mT @ (q - q.mean(0)))
    sign = torch.linalg.det(u @ vh).sign().detach()
    return (vh.mT * torch.stack([torch.ones_like(sign), torch.ones_like(sign), sign])) @ u.mT


# Complex numbers and spectra.


class ComplexModulus(torch.autograd.Function):
    """|z|, with the gradient zero where z is zero."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        ctx.save_for_backward(z)
        return z.abs()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        return g * z.sgn()


class SpectralFilter(torch.autograd.Function):
    """A real signal, filtered by a real response of its frequencies."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, response: Tensor) -> Tensor:
        ctx.save_for_backward(x, response)
        return torch.fft.irfft(torch.fft.rfft(x) * response, n=x.shape[-1])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, response = ctx.saved_tensors
        n = x.shape[-1]
        dx = torch.fft.irfft(torch.fft.rfft(g) * response, n=n)
        twice = torch.full_like(response, 2.0)
        twice[0] = 1
        if n % 2 == 0:
            twice[-1] = 1
        dresponse = (torch.fft.rfft(g).conj() * torch.fft.rfft(x)).real * twice / n
        return dx, dresponse.flatten(0, -2).sum(0)


def stft_filter(x: Tensor, mask: Tensor, size: int) -> Tensor:
    """A signal, masked in its short-time spectrum and put together again."""
    window = torch.hann_window(size, dtype=x.dtype)
    spectrum = torch.stft(x, size, window=window, return_complex=True)
    return torch.istft(spectrum * mask[:, None], size, window=window, length=x.shape[-1])


# Operators.


@custom_op("reports_blind_sound::scaled_sine", mutates_args=())
def scaled_sine(x: Tensor, weight: Tensor, omega: float) -> Tensor:
    return (omega * x).sin() * weight


@scaled_sine.register_fake
def _(x: Tensor, weight: Tensor, omega: float) -> Tensor:
    return torch.empty_like(x)


def _scaled_sine_setup(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
    x, weight, ctx.omega = inputs
    ctx.save_for_backward(x, weight)


def _scaled_sine_backward(ctx: Any, g: Tensor) -> Grads:
    x, weight = ctx.saved_tensors
    dx = g * weight * ctx.omega * (ctx.omega * x).cos()
    return dx, (g * (ctx.omega * x).sin()).flatten(0, -2).sum(0), None


scaled_sine.register_autograd(_scaled_sine_backward, setup_context=_scaled_sine_setup)


@custom_op("reports_blind_sound::weighted_var", mutates_args=())
def weighted_var(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted mean and variance of the rows."""
    total = weight.sum()
    mean = (x * weight).sum(-1) / total
    return mean, ((x - mean[:, None]).square() * weight).sum(-1) / total


@weighted_var.register_fake
def _(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape[0]), x.new_empty(x.shape[0])


def _weighted_var_setup(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _weighted_var_backward(ctx: Any, dmean: Tensor, dvar: Tensor) -> Grads:
    x, weight, mean, var = ctx.saved_tensors
    total, d = weight.sum(), x - mean[:, None]
    dx = weight / total * (dmean[:, None] + 2 * dvar[:, None] * d)
    dweight = (dmean[:, None] * d + dvar[:, None] * (d * d - var[:, None])).sum(0) / total
    return dx, dweight


weighted_var.register_autograd(_weighted_var_backward, setup_context=_weighted_var_setup)
