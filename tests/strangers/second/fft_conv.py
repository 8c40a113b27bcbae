import torch


class FFTConv(torch.autograd.Function):
    """Causal depthwise convolution with a long filter: x (B, C, L), k (C, K)."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x, k)
        n = x.shape[-1] + k.shape[-1]
        y = torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(k, n), n)
        return y[..., : x.shape[-1]].contiguous()

    @staticmethod
    def backward(ctx, grad_y):
        x, k = ctx.saved_tensors
        n = x.shape[-1] + k.shape[-1]
        G = torch.fft.rfft(grad_y, n)
        grad_x = grad_k = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.fft.irfft(G * torch.fft.rfft(k, n).conj(), n)[..., : x.shape[-1]]
        if ctx.needs_input_grad[1]:
            corr = torch.fft.irfft((G * torch.fft.rfft(x, n).conj()).sum(0), n)
            grad_k = corr[..., : k.shape[-1]]
        return grad_x, grad_k


def fft_conv(x, k):
    return FFTConv.apply(x, k)


function = fft_conv
wrt = ("x", "k")


def calls():
    g = torch.Generator().manual_seed(110)
    x = torch.randn(2, 3, 9, generator=g, dtype=torch.float64)
    k = torch.randn(3, 4, generator=g, dtype=torch.float64)
    long = torch.randn(3, 12, generator=g, dtype=torch.float64)
    return [((x, k), {}), ((x[:1], long), {})]


def primal(x, k):
    x = torch.nn.functional.pad(x, (k.shape[-1] - 1, 0))
    return torch.nn.functional.conv1d(x, k.flip(-1).unsqueeze(1), groups=k.shape[0])


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
