import torch


class LowPass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, signal, keep):
        ctx.keep = keep
        n = signal.shape[-1]
        spec = torch.fft.rfft(signal, dim=-1)
        spec[..., keep:] = 0
        return torch.fft.irfft(spec, n=n, dim=-1)

    @staticmethod
    def backward(ctx, grad_output):
        # an orthogonal projection is its own adjoint
        return LowPass.apply(grad_output, ctx.keep), None


def lowpass(signal, keep=3):
    return LowPass.apply(signal, keep)


function = lowpass
wrt = ("signal",)


def calls():
    g = torch.Generator().manual_seed(11)
    even = torch.randn(3, 8, generator=g, dtype=torch.float64)
    odd = torch.randn(2, 9, generator=g, dtype=torch.float64)
    return [((even,), {}), ((odd, 2), {}), ((even,), {"keep": 5})]


def primal(signal, keep=3):
    spec = torch.fft.rfft(signal, dim=-1)
    mask = (torch.arange(spec.shape[-1]) < keep).to(signal.dtype)
    return torch.fft.irfft(spec * mask, n=signal.shape[-1], dim=-1)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
