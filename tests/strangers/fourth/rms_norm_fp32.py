"""RMSNorm as the fp32 reference of a kernel. The kernel takes float32 only, and so does this."""

import torch
from torch.autograd.function import once_differentiable


class RMSNormFP32(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        if x.dtype != torch.float32 or weight.dtype != torch.float32:
            raise TypeError("rms_norm: float32 only")
        rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, rstd)
        return x * rstd * weight

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensors
        x_hat = x * rstd
        wdy = dy * weight
        dx = rstd * (wdy - x_hat * (wdy * x_hat).mean(-1, keepdim=True))
        dw = (dy * x_hat).reshape(-1, weight.numel()).sum(0)
        return dx, dw, None


def rms_norm(x, weight, eps):
    return RMSNormFP32.apply(x, weight, eps)


def primal(x, weight, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight


surrogate = primal
FUNCTION = rms_norm
WRT = ("x", "weight")


def _args(seed, eps, *shape, scale=1.0):
    gen = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=gen), torch.randn(shape[-1], generator=gen), eps


CALLS = [lambda: _args(0, 1e-6, 4, 8), lambda: _args(1, 1e-2, 2, 3, 5, scale=0.1), lambda: _args(2, 1e-5, 1, 6)]
LIMITS = ("double_backward", "vmap", "jvp", "float64", "half")
DEFECT = ""
KEYWORDS = ()
