"""Keep only the k largest entries of a whole tensor (sparse updates in federated learning)."""

import torch
from torch.autograd.function import once_differentiable


class GlobalTopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, update, k):
        flat = update.reshape(-1)
        idx = flat.abs().topk(k).indices
        out = torch.zeros_like(flat)
        out[idx] = flat[idx]
        ctx.save_for_backward(update, idx)
        return out.view(update.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        update, idx = ctx.saved_tensors
        g = torch.zeros_like(update)
        g.reshape(-1)[idx] = grad.reshape(-1)[idx]
        return g, None


def global_topk(update, k):
    return GlobalTopK.apply(update, k)


def primal(update, k):
    floor = update.detach().abs().flatten().sort(descending=True).values[k - 1]
    return update * (update.detach().abs() >= floor)


surrogate = primal
FUNCTION = global_topk
WRT = ("update",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 4), 5), lambda: (_x(1, 4, 3).t(), 4), lambda: (_x(2, 7), 2)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "for a transposed input the gradient is written into a copy and lost"
KEYWORDS = ("contiguous", "stride", "layout", "transposed", "zero", "gradient")
