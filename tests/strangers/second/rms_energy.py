import torch


class RMSEnergy(torch.autograd.Function):
    """Root mean square of every audio frame (..., L) -> (...). Works under autocast, any float dtype."""

    @staticmethod
    def forward(frames, eps):
        return ((frames * frames).sum(-1) / frames.shape[-1] + eps).sqrt()

    @staticmethod
    def setup_context(ctx, inputs, output):
        frames, _ = inputs
        ctx.save_for_backward(frames, output)

    @staticmethod
    def backward(ctx, grad):
        frames, rms = ctx.saved_tensors
        return (grad / rms / frames.shape[-1]).unsqueeze(-1) * frames, None


def rms_energy(frames, eps=1e-5):
    return RMSEnergy.apply(frames, eps)


function = rms_energy
wrt = ("frames",)


def calls():
    g = torch.Generator().manual_seed(136)
    a = torch.randn(3, 8, generator=g, dtype=torch.float64)
    b = (60 * torch.randn(2, 64, generator=g)).half()
    return [((a,), {}), ((b,), {})]


def primal(frames, eps=1e-5):
    x = frames.float() if frames.dtype in (torch.half, torch.bfloat16) else frames
    return (x.square().mean(-1) + eps).sqrt().to(frames.dtype)


def show():
    (frames,), _ = calls()[1]
    return bool(function(frames).isinf().all() and primal(frames).isfinite().all())


TRUTH = {
    "sound": False,
    "defect": "In half precision the sum of squares overflows, so ordinary frames give inf and a zero gradient.",
    "rank": "wrong",
    "names": ["half", "float16", "overflow", "inf"],
    "first_law": "float16 values",
}
