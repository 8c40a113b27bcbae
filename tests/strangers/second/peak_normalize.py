import torch
from torch.autograd.function import once_differentiable


class PeakNormalize(torch.autograd.Function):
    """Remove the DC offset of every channel and scale to unit peak. Returns a new waveform."""

    @staticmethod
    def forward(ctx, wave):
        wave -= wave.mean(-1, keepdim=True)
        peak, where = wave.abs().max(-1, keepdim=True)
        out = wave / peak
        ctx.save_for_backward(out, peak, where)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out, peak, where = ctx.saved_tensors
        inner = (grad * out).sum(-1, keepdim=True)
        g = grad.scatter_add(-1, where, -inner * out.gather(-1, where)) / peak
        return g - g.mean(-1, keepdim=True)


def peak_normalize(wave):
    return PeakNormalize.apply(wave)


function = peak_normalize
wrt = ("wave",)


def calls():
    g = torch.Generator().manual_seed(130)
    a = 0.3 + torch.randn(2, 16, generator=g, dtype=torch.float64)
    b = torch.randn(9, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def primal(wave):
    c = wave - wave.mean(-1, keepdim=True)
    return c / c.abs().amax(-1, keepdim=True)


def show():
    (wave,), _ = calls()[0]
    before = wave.clone()
    function(wave)
    return not torch.equal(wave, before) and wave.mean(-1).abs().max() < 1e-12


TRUTH = {
    "sound": False,
    "defect": "The mean is subtracted from the input itself, in place and without mark_dirty.",
    "rank": "wrong",
    "names": ["in place", "mark_dirty", "wave", "input is modified", "mutated", "changed in place"],
    "first_law": "wave is changed",
}
