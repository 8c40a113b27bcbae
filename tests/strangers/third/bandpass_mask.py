import torch


class BandpassMask(torch.autograd.Function):
    """Keeps the frequencies lo..hi (bins) of a real signal of even length."""

    @staticmethod
    def forward(ctx, x, lo, hi):
        n = x.shape[-1]
        spec = torch.fft.rfft(x)
        k = torch.arange(spec.shape[-1])
        gain = ((k >= lo) & (k <= hi)).to(x.dtype)
        ctx.gain = gain
        ctx.n = n
        return torch.fft.irfft(spec * gain, n=n)

    @staticmethod
    def backward(ctx, grad):
        # d/dspec of irfft counts the inner bins twice and divides by n; rfft's own adjoint halves them again
        n = ctx.n
        weight = ctx.gain
        weight[1 : n // 2].mul_(2)
        weight.div_(n)
        spec = torch.fft.rfft(grad) * weight
        t = torch.arange(n, dtype=grad.dtype)
        phase = 2 * torch.pi * torch.outer(torch.arange(len(weight), dtype=grad.dtype), t) / n
        return spec.real @ phase.cos() - spec.imag @ phase.sin(), None, None


def bandpass_mask(x, lo=1, hi=2):
    return BandpassMask.apply(x, lo, hi)


function = bandpass_mask
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(311)
    x = torch.randn(2, 8, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"lo": 0, "hi": 4})]


def primal(x, lo=1, hi=2):
    spec = torch.fft.fft(x)
    k = torch.fft.fftfreq(x.shape[-1], 1 / x.shape[-1], dtype=x.dtype).abs()
    return torch.fft.ifft(spec * ((k >= lo) & (k <= hi))).real


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    v = torch.arange(16, dtype=x.dtype).reshape(2, 8).sin()
    y = function(x)
    (once,) = torch.autograd.grad(y, x, v, retain_graph=True)
    (again,) = torch.autograd.grad(y, x, v)
    (true,) = torch.autograd.grad(primal(x), x, v)
    return torch.allclose(once, true) and (again - true).abs().max().item() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward scales the gain kept on ctx in place: a second backward over the retained graph scales it "
    "again and gives another gradient.",
    "rank": "wrong",
    "names": ["second backward", "twice", "retain_graph", "retained", "again", "repeated", "in place"],
    "first_law": "a second backward of the same graph",
}
