"""Linear layer that runs in the dtype of its input whatever that of the weight."""

import torch


class MixedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        w = weight.to(x.dtype)
        ctx.save_for_backward(x, w)
        ctx.weight_dtype = weight.dtype
        return x @ w.t()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        g_x = grad @ w if x.requires_grad else None
        g_weight = None
        if w.requires_grad:
            g_weight = (grad.t() @ x).to(ctx.weight_dtype)
        return g_x, g_weight


def mixed_linear(x, weight):
    return MixedLinear.apply(x, weight)


def primal(x, weight):
    return torch.einsum("ni,oi->no", x, weight.to(x.dtype))


surrogate = primal
FUNCTION = mixed_linear
WRT = ("x", "weight")


def _args(seed, n, i, o, dtype):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, i, generator=gen, dtype=torch.float64)
    return x, torch.randn(o, i, generator=gen, dtype=torch.float64).to(dtype)


CALLS = [lambda: _args(0, 4, 3, 2, torch.float64), lambda: _args(1, 2, 3, 3, torch.float32)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "backward asks the cast copy for requires_grad: a weight of another dtype gets no gradient"
KEYWORDS = ("weight", "dtype", "requires_grad", "none", "cast", "gradient")
