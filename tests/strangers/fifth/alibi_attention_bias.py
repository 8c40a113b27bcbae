"""ALiBi: add a per-head slope times distance to attention scores."""

import torch


class AlibiBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, slopes):
        t = scores.shape[-1]
        pos = torch.arange(t, device=scores.device, dtype=scores.dtype)
        dist = -(pos[:, None] - pos[None, :]).abs()
        ctx.save_for_backward(dist)
        ctx.heads = slopes.shape[0]
        return scores + slopes[:, None, None] * dist

    @staticmethod
    def backward(ctx, grad):
        (dist,) = ctx.saved_tensors
        g_slopes = None
        if ctx.needs_input_grad[1]:
            g_slopes = (grad * dist).reshape(ctx.heads, -1).sum(-1)
        return grad, g_slopes


def alibi(scores, slopes):
    return AlibiBias.apply(scores, slopes)


def primal(scores, slopes):
    pos = torch.arange(scores.shape[-1])
    dist = (pos.view(1, -1) - pos.view(-1, 1)).abs().to(scores.dtype)
    return scores - torch.einsum("h,qk->hqk", slopes, dist)


surrogate = primal
FUNCTION = alibi
WRT = ("scores", "slopes")


def _args(seed, b, h, t):
    gen = torch.Generator().manual_seed(seed)
    scores = torch.randn(b, h, t, t, generator=gen, dtype=torch.float64)
    return scores, torch.rand(h, generator=gen, dtype=torch.float64)


CALLS = [lambda: _args(0, 1, 3, 4), lambda: _args(1, 2, 3, 4), lambda: _args(2, 4, 2, 3)]
LIMITS = ("vmap", "jvp")
DEFECT = "the reshape for the gradient of slopes mixes batch and head: wrong for more than one batch element"
KEYWORDS = ("slopes", "batch", "broadcast", "reduction", "sum", "gradient")
