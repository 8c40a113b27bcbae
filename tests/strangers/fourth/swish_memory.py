import torch
from torch.autograd.function import once_differentiable


class SwishFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        sig = torch.sigmoid(x)
        ctx.save_for_backward(x, sig)
        return x * sig

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, sig = ctx.saved_tensors
        # no new buffer for the derivative
        deriv = sig.data
        deriv.mul_(1 + x * (1 - sig))
        return grad_output * deriv


class Swish(torch.nn.Module):
    def forward(self, x):
        return SwishFn.apply(x)


def swish(x):
    return Swish()(x)


def primal(x):
    return torch.nn.functional.silu(x)


surrogate = primal
FUNCTION = swish
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 4, 3),), lambda: (_x(1, 7),), lambda: (_x(2, 1, 1, 2) * 5,)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "backward overwrites the saved sigmoid in place, so a repeated backward (retain_graph) gives another gradient"
KEYWORDS = ("saved", "in place", "repeat", "retain_graph")
