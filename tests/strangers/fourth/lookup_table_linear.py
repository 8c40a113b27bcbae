# np.interp for torch, with gradients for the query, the knots and the values
import torch


def _locate(xq, xp):
    idx = torch.searchsorted(xp.detach().contiguous(), xq.detach().contiguous(), right=True) - 1
    return idx.clamp(0, xp.numel() - 2)


class Interp1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xq, xp, fp):
        idx = _locate(xq, xp)
        ctx.save_for_backward(xq, xp, fp, idx)
        t = ((xq - xp[idx]) / (xp[idx + 1] - xp[idx])).clamp(0, 1)
        return fp[idx] + t * (fp[idx + 1] - fp[idx])

    @staticmethod
    def backward(ctx, grad):
        xq, xp, fp, idx = ctx.saved_tensors
        h = xp[idx + 1] - xp[idx]
        t_raw = (xq - xp[idx]) / h
        t = t_raw.clamp(0, 1)
        inside = ((t_raw >= 0) & (t_raw <= 1)).to(grad.dtype)
        gs = grad * inside * (fp[idx + 1] - fp[idx]) / h
        flat = idx.reshape(-1)
        gxp = torch.zeros_like(xp).index_add(0, flat, (-gs * (1 - t)).reshape(-1))
        gxp = gxp.index_add(0, flat + 1, (-gs * t).reshape(-1))
        gfp = torch.zeros_like(fp).index_add(0, flat, (grad * (1 - t)).reshape(-1))
        gfp = gfp.index_add(0, flat + 1, (grad * t).reshape(-1))
        return gs, gxp, gfp


def interp(xq, xp, fp):
    return Interp1d.apply(xq, xp, fp)


def primal(xq, xp, fp):
    idx = _locate(xq, xp)
    t = ((xq - xp[idx]) / (xp[idx + 1] - xp[idx])).clamp(0, 1)
    return (1 - t) * fp[idx] + t * fp[idx + 1]


surrogate = primal
FUNCTION = interp
WRT = ("xq", "xp", "fp")


def _args(seed, knots, *shape):
    gen = torch.Generator().manual_seed(seed)
    xp = torch.cumsum(torch.rand(knots, generator=gen, dtype=torch.float64) + 0.2, 0)
    fp = torch.randn(knots, generator=gen, dtype=torch.float64)
    xq = torch.rand(*shape, generator=gen, dtype=torch.float64) * (xp[-1] + 0.5)
    return xq, xp, fp


CALLS = [lambda: _args(0, 6, 9), lambda: _args(1, 2, 3, 4), lambda: _args(2, 5, 1)]
LIMITS = ("vmap", "jvp", "compile", "half")
DEFECT = ""
KEYWORDS = ()
