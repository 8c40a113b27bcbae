import torch


class CenterWaveform(torch.autograd.Function):
    """Removes the DC offset of every channel and amplifies. wave (..., time)."""

    @staticmethod
    def forward(ctx, wave, gain):
        ctx.gain = gain
        wave -= wave.mean(-1, keepdim=True)
        return gain * wave

    @staticmethod
    def backward(ctx, grad):
        grad = ctx.gain * grad
        return grad - grad.mean(-1, keepdim=True), None


def center_waveform(wave, gain=1.0):
    return CenterWaveform.apply(wave, gain)


function = center_waveform
wrt = ("wave",)


def calls():
    g = torch.Generator().manual_seed(317)
    w = torch.randn(2, 5, generator=g, dtype=torch.float64) + 1
    return [((w,), {}), ((w[0],), {"gain": 0.25})]


def primal(wave, gain=1.0):
    return gain * (wave - wave.mean(-1, keepdim=True))


def show():
    (w,), _ = calls()[0]
    before = w.clone()
    right = torch.allclose(function(w), primal(before))
    return right and not torch.allclose(w, before)


TRUTH = {
    "sound": False,
    "defect": "The mean is subtracted from the caller's tensor in place, without mark_dirty: whoever uses the wave "
    "afterwards reads other numbers.",
    "rank": "wrong",
    "names": ["in place", "input", "modified", "mark_dirty", "mutates", "wave"],
    "first_law": "inputs are left as they are",
}
