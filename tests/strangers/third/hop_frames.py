import torch


class HopFrames(torch.autograd.Function):
    """Overlapping frames of a signal, as a view on it: (..., time) -> (..., frames, size)."""

    @staticmethod
    def forward(ctx, x, size, hop):
        ctx.shape, ctx.size, ctx.hop = x.shape, size, hop
        return x.unfold(-1, size, hop)

    @staticmethod
    def backward(ctx, grad):
        frames = grad.shape[-2]
        out = grad.new_zeros(ctx.shape)
        for i in range(frames):
            at = i * ctx.hop
            piece = torch.nn.functional.pad(grad[..., i, :], (at, ctx.shape[-1] - at - ctx.size))
            out = out + piece
        return out, None, None


def hop_frames(x, size=4, hop=2):
    return HopFrames.apply(x, size, hop)


function = hop_frames
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(352)
    x = torch.randn(2, 9, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"size": 2, "hop": 3}), ((x,), {"size": 9, "hop": 1})]


def primal(x, size=4, hop=2):
    n = (x.shape[-1] - size) // hop + 1
    return x[..., torch.arange(n)[:, None] * hop + torch.arange(size)]


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
