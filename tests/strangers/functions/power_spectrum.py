import torch


class PowerSpectrum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, signal):
        ctx.save_for_backward(signal)
        spec = torch.fft.rfft(signal, dim=-1)
        return spec.real**2 + spec.imag**2

    @staticmethod
    def backward(ctx, grad_power):
        (signal,) = ctx.saved_tensors
        n = signal.shape[-1]
        spec = torch.fft.rfft(signal, dim=-1)
        # adjoint of the transform, half spectrum padded to n
        return 2 * torch.fft.ifft(grad_power * spec, n=n, dim=-1).real


power_spectrum = PowerSpectrum.apply
function = power_spectrum
wrt = ("signal",)


def calls():
    g = torch.Generator().manual_seed(20)
    return [
        ((torch.randn(3, 8, generator=g, dtype=torch.float64),), {}),
        ((torch.randn(2, 2, 5, generator=g, dtype=torch.float64),), {}),
    ]


def primal(signal):
    return torch.fft.rfft(signal, dim=-1).abs().square()


def show():
    x = torch.randn(8, dtype=torch.float64, requires_grad=True)
    (mine,) = torch.autograd.grad(power_spectrum(x).sum(), x)
    (true,) = torch.autograd.grad(primal(x).sum(), x)
    return torch.allclose(8 * mine, true) and not torch.allclose(mine, true)


TRUTH = {
    "sound": False,
    "defect": "The gradient is too small by the factor n, the length of the signal: ifft divides by n, the adjoint of rfft does not.",
    "rank": "wrong",
    "names": ["factor", "off by", "times too", "scale", "gradient of signal", "signal"],
    "first_law": "the gradient of signal",
}
