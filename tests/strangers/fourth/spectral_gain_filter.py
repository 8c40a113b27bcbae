import torch


class SpectralGain(torch.autograd.Function):
    """y = irfft(gain * rfft(x)) with a real gain per frequency, shared by the batch."""

    @staticmethod
    def forward(x, gain):
        return torch.fft.irfft(gain * torch.fft.rfft(x), n=x.shape[-1])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gy):
        x, gain = ctx.saved_tensors
        n = x.shape[-1]
        gy_f = torch.fft.rfft(gy)
        gx = ggain = None
        if ctx.needs_input_grad[0]:
            gx = torch.fft.irfft(gain * gy_f, n=n)
        if ctx.needs_input_grad[1]:
            twice = torch.full_like(gain, 2.0)
            twice[0] = 1.0
            if n % 2 == 0:
                twice[-1] = 1.0
            corr = (torch.fft.rfft(x).conj() * gy_f).real
            ggain = twice / n * corr.reshape(-1, gain.numel()).sum(0)
        return gx, ggain


def spectral_gain(x, gain):
    return SpectralGain.apply(x, gain)


def primal(x, gain):
    n = x.shape[-1]
    kernel = torch.fft.irfft(gain.to(torch.complex128), n=n)
    shift = (torch.arange(n).unsqueeze(1) - torch.arange(n)) % n
    return x @ kernel[shift].T


surrogate = primal
FUNCTION = spectral_gain
WRT = ("x", "gain")


def _args(seed, n, *batch):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(*batch, n, generator=gen, dtype=torch.float64)
    return x, torch.rand(n // 2 + 1, generator=gen, dtype=torch.float64)


CALLS = [lambda: _args(0, 8, 3), lambda: _args(1, 7, 2, 2), lambda: _args(2, 6)]
LIMITS = ("vmap", "jvp", "half", "compile")
DEFECT = ""
KEYWORDS = ()
