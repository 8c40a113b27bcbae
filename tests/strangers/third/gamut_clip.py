import torch


class GamutClip(torch.autograd.Function):
    """Clips colours to what the display can show; no gradient where clipped."""

    @staticmethod
    def forward(ctx, rgb, low=0.0, high=1.0):
        ctx.save_for_backward((rgb >= low) & (rgb <= high))
        return rgb.clamp(low, high)

    @staticmethod
    def backward(ctx, grad_output):
        (inside,) = ctx.saved_tensors
        grad_output.mul_(inside)
        return grad_output, None, None


def gamut_clip(rgb, low=0.0, high=1.0):
    return GamutClip.apply(rgb, low, high)


function = gamut_clip
wrt = ("rgb",)


def calls():
    g = torch.Generator().manual_seed(318)
    x = torch.randn(2, 3, 4, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"low": -1.0})]


def primal(rgb, low=0.0, high=1.0):
    return torch.clamp(rgb, min=low, max=high)


def show():
    (x,), _ = calls()[0]
    w = torch.ones_like(x).requires_grad_()
    x.requires_grad_()
    skip = w * 3
    (mine,) = torch.autograd.grad((function(x) + skip).sum(dim=-1).square().sum(), w)
    skip = w * 3
    (true,) = torch.autograd.grad((primal(x) + skip).sum(dim=-1).square().sum(), w)
    v = torch.ones_like(x)
    torch.autograd.grad(function(x), x, v)
    return (mine - true).abs().max().item() > 1e-2 or not torch.equal(v, torch.ones_like(x))


TRUTH = {
    "sound": False,
    "defect": "backward masks the incoming gradient in place: who else reads that tensor (the other branch of a sum, "
    "a hook, the caller) sees it masked.",
    "rank": "wrong",
    "names": ["incoming gradient", "grad_output", "in place", "modified", "cotangent"],
    "first_law": "the incoming gradient is left as it is",
}
