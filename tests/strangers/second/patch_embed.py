import torch
from torch.nn import functional as F


class PatchEmbed(torch.autograd.Function):
    """ViT patch embedding: x (B, C, H, W), weight (D, C * p * p) -> tokens (B, N, D)."""

    @staticmethod
    def forward(ctx, x, weight, p):
        ctx.save_for_backward(x, weight)
        ctx.p = p
        return F.unfold(x, p, stride=p).transpose(1, 2) @ weight.t()

    @staticmethod
    def backward(ctx, grad_tokens):
        x, weight = ctx.saved_tensors
        g = grad_tokens.view(-1, weight.shape[0])
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            cols = (g @ weight).reshape(x.shape[0], -1, weight.shape[1]).transpose(1, 2)
            grad_x = F.fold(cols, x.shape[-2:], ctx.p, stride=ctx.p)
        if ctx.needs_input_grad[1]:
            patches = F.unfold(x, ctx.p, stride=ctx.p).transpose(1, 2)
            grad_w = g.t() @ patches.reshape(-1, weight.shape[1])
        return grad_x, grad_w, None


def patch_embed(x, weight, p=2):
    return PatchEmbed.apply(x, weight, p)


function = patch_embed
wrt = ("x", "weight")


def calls():
    g = torch.Generator().manual_seed(132)
    x = torch.randn(2, 3, 4, 6, generator=g, dtype=torch.float64)
    w = torch.randn(5, 12, generator=g, dtype=torch.float64)
    u = torch.randn(4, 27, generator=g, dtype=torch.float64)
    return [((x, w), {}), ((x[:, :, :3], u), {"p": 3})]


def primal(x, weight, p=2):
    kernel = weight.reshape(weight.shape[0], x.shape[1], p, p)
    return F.conv2d(x, kernel, stride=p).flatten(2).transpose(1, 2)


def show():
    (x, w), _ = calls()[0]
    w.requires_grad_()
    function(x, w).sum().backward()
    try:
        # the usual way back to a feature map
        (function(x, w).transpose(1, 2).contiguous() ** 2).sum().backward()
    except RuntimeError as e:
        return "view" in str(e)
    return False


TRUTH = {
    "sound": False,
    "defect": "backward uses view on the incoming gradient and raises when that is not contiguous.",
    "rank": "refused",
    "names": ["contiguous", "view", "stride", "incoming gradient", "layout"],
    "first_law": "a non-contiguous incoming gradient",
}
