"""Short-time energy of audio: squared sum over frames of `win` samples every `hop` samples."""

import torch
from torch.autograd.function import once_differentiable


class FramedEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, wav, win, hop):
        ctx.save_for_backward(wav)
        ctx.win, ctx.hop = win, hop
        return wav.contiguous().unfold(1, win, hop).square().sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (wav,) = ctx.saved_tensors
        win, hop = ctx.win, ctx.hop
        batch, length = wav.shape
        n = grad.shape[1]
        frames = wav.as_strided((batch, n, win), (length, hop, 1))
        g_frames = 2 * frames * grad.unsqueeze(-1)
        pos = (torch.arange(n)[:, None] * hop + torch.arange(win)).reshape(-1)
        out = torch.zeros(batch, length, dtype=wav.dtype, device=wav.device)
        out.index_add_(1, pos.to(wav.device), g_frames.reshape(batch, -1))
        return out, None, None


def framed_energy(wav, win, hop):
    return FramedEnergy.apply(wav, win, hop)


def primal(wav, win, hop):
    n = (wav.shape[1] - win) // hop + 1
    return torch.stack([(wav[:, i * hop : i * hop + win] ** 2).sum(1) for i in range(n)], 1)


surrogate = primal
FUNCTION = framed_energy
WRT = ("wav",)


def _wav(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_wav(0, 2, 12), 4, 2),
    lambda: (_wav(1, 9, 3).t(), 3, 3),  # time-major recording
    lambda: (_wav(2, 1, 5), 5, 1),
]
LIMITS = ("double_backward", "vmap", "jvp", "compile")
DEFECT = "backward strides through the saved input as if it were contiguous: wrong gradient for a non-contiguous wav"
KEYWORDS = ("contiguous", "stride", "layout", "transposed")
