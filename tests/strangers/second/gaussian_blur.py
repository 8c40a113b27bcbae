import torch
from torch.nn import functional as F

_KERNELS = {}


def _kernel(size, sigma, like):
    key = (size, like.dtype, like.device)
    if key not in _KERNELS:
        t = torch.arange(size, dtype=like.dtype, device=like.device) - (size - 1) / 2
        k = torch.exp(-0.5 * (t / sigma) ** 2)
        _KERNELS[key] = (k / k.sum()).view(1, 1, -1)
    return _KERNELS[key]


class GaussianBlur1d(torch.autograd.Function):
    """Blur (B, L) along the last axis with zero padding; odd kernel size."""

    @staticmethod
    def forward(ctx, x, sigma, size):
        kernel = _kernel(size, sigma, x)
        ctx.save_for_backward(kernel)
        return F.conv1d(x.unsqueeze(1), kernel, padding=size // 2).squeeze(1)

    @staticmethod
    def backward(ctx, grad):
        (kernel,) = ctx.saved_tensors
        return F.conv_transpose1d(grad.unsqueeze(1), kernel, padding=kernel.shape[-1] // 2).squeeze(1), None, None


def gaussian_blur(x, sigma=1.0, size=5):
    return GaussianBlur1d.apply(x, sigma, size)


function = gaussian_blur
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(149)
    x = torch.randn(2, 9, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x,), {"sigma": 3.0}), ((x,), {"sigma": 2.0, "size": 7})]


def primal(x, sigma=1.0, size=5):
    t = torch.arange(size, dtype=x.dtype) - size // 2
    k = (-0.5 * t.square() / sigma**2).softmax(0)
    padded = F.pad(x, (size // 2, size // 2))
    return sum(k[i] * padded[:, i : i + x.shape[1]] for i in range(size))


def show():
    _KERNELS.clear()
    outs = [torch.allclose(function(*a, **k), primal(*a, **k)) for a, k in calls()]
    _KERNELS.clear()
    (x,), kw = calls()[1]
    alone = torch.allclose(function(x, **kw), primal(x, **kw))
    _KERNELS.clear()
    return outs == [True, False, True] and alone


TRUTH = {
    "sound": False,
    "defect": "The cached kernel is looked up by size only: a later call with another sigma gets the kernel of the "
    "first.",
    "rank": "wrong",
    "names": ["cache", "sigma", "stale", "earlier call", "kernel"],
    "first_law": "the values of the second call",
}
