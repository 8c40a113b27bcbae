"""Per-channel gain and mean over time of an utterance, computed in float32 at least."""

import torch


class MeanGain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, frames, gain):
        ctx.save_for_backward(frames, gain)
        up = torch.promote_types(frames.dtype, torch.float32)
        return (frames.to(up).mean(-2) * gain.to(up)).to(frames.dtype)

    @staticmethod
    def backward(ctx, grad):
        frames, gain = ctx.saved_tensors
        n = frames.shape[-2]
        g_frames = (grad * gain / n).unsqueeze(-2).expand_as(frames)
        g_gain = (grad.unsqueeze(-2) * frames).sum(-2) / n
        return g_frames, g_gain.sum_to_size(gain.shape)


def mean_gain(frames, gain):
    return MeanGain.apply(frames, gain)


def primal(frames, gain):
    up = torch.promote_types(frames.dtype, torch.float32)
    return (frames.to(up) * gain.to(up)).mean(-2).to(frames.dtype)


surrogate = primal
FUNCTION = mean_gain
WRT = ("frames", "gain")


def _args(seed, b, t, c, level, dtype=torch.float64):
    gen = torch.Generator().manual_seed(seed)
    frames = level * (0.5 + torch.rand(b, t, c, generator=gen, dtype=torch.float64))
    return frames.to(dtype), torch.rand(c, generator=gen, dtype=torch.float64).to(dtype)


CALLS = [
    lambda: _args(0, 2, 5, 3, 1.0),
    lambda: _args(1, 1, 4, 2, 1.0, torch.float16),
    lambda: _args(2, 1, 400, 2, 4000.0, torch.float16),
]
LIMITS = ("vmap", "jvp")
DEFECT = "in float16 the sum over time overflows in the gradient of gain, as it is divided by the length only later"
KEYWORDS = ("gain", "float16", "half", "overflow", "inf", "precision")
