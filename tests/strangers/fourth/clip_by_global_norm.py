"""Scales a list of tensors to a joint norm of at most max_norm; differentiable (meta-learning)."""

import torch


class ClipByGlobalNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, max_norm, *tensors):
        total = sum(t.square().sum() for t in tensors).sqrt()
        scale = torch.clamp(max_norm / total, max=1.0)
        ctx.max_norm = max_norm
        ctx.save_for_backward(*tensors)
        return tuple(t * scale for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        tensors = ctx.saved_tensors
        total = sum(t.square().sum() for t in tensors).sqrt()
        if total <= ctx.max_norm:
            return (None, *(g.clone() for g in grads))
        scale = ctx.max_norm / total
        inner = sum((g * t).sum() for g, t in zip(grads, tensors, strict=True))
        return (None, *(scale * (g - t * inner / total**2) for g, t in zip(grads, tensors, strict=True)))


def clip_three(a, b, c, max_norm):
    return ClipByGlobalNorm.apply(max_norm, a, b, c)


def primal(a, b, c, max_norm):
    total = torch.cat([a.flatten(), b.flatten(), c.flatten()]).norm()
    scale = torch.minimum(max_norm / total, torch.ones_like(total))
    return a * scale, b * scale, c * scale


surrogate = primal
FUNCTION = clip_three
WRT = ("a", "b", "c")


def _args(seed, max_norm):
    gen = torch.Generator().manual_seed(seed)
    shapes = [(2, 3), (4,), (1, 2, 2)]
    return (*(torch.randn(*s, generator=gen, dtype=torch.float64) for s in shapes), max_norm)


CALLS = [lambda: _args(0, 1.0), lambda: _args(1, 100.0), lambda: _args(2, 0.25)]
LIMITS = ("vmap", "jvp", "compile")
DEFECT = ""
KEYWORDS = ()
