import torch


class SoftArgmax2d(torch.autograd.Function):
    """Expected (x, y) pixel position under the softmax of a heat map (B, H, W) -> (B, 2)."""

    @staticmethod
    def forward(ctx, heat):
        H, W = heat.shape[-2:]
        ctx.save_for_backward(heat)
        p = torch.softmax(heat.flatten(1), 1)
        index = torch.arange(H * W, device=heat.device)
        xy = torch.stack([index % W, torch.div(index, W, rounding_mode="floor")], 1)
        return p @ xy.to(heat.dtype)

    @staticmethod
    def backward(ctx, grad):
        (heat,) = ctx.saved_tensors
        W, H = heat.shape[-2:]
        p = torch.softmax(heat.flatten(1), 1)
        index = torch.arange(H * W, device=heat.device)
        xy = torch.stack([index % W, torch.div(index, W, rounding_mode="floor")], 1)
        along = grad @ xy.to(heat.dtype).t()
        return (p * (along - (p * along).sum(1, keepdim=True))).reshape(heat.shape)


def soft_argmax_2d(heat):
    return SoftArgmax2d.apply(heat)


function = soft_argmax_2d
wrt = ("heat",)


def calls():
    g = torch.Generator().manual_seed(142)
    a = torch.randn(2, 4, 4, generator=g, dtype=torch.float64)
    b = torch.randn(3, 3, 5, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def primal(heat):
    p = torch.softmax(heat.flatten(1), 1).view_as(heat)
    xs = torch.arange(heat.shape[2], dtype=heat.dtype)
    ys = torch.arange(heat.shape[1], dtype=heat.dtype)
    return torch.stack([(p.sum(1) * xs).sum(1), (p.sum(2) * ys).sum(1)], 1)


def show():
    off = []
    for (heat,), _ in calls():
        heat.requires_grad_()
        (mine,) = torch.autograd.grad(function(heat)[:, 0].sum(), heat)
        (true,) = torch.autograd.grad(primal(heat)[:, 0].sum(), heat)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-12 and off[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward takes height for width, so the gradient is wrong for every map that is not square.",
    "rank": "wrong",
    "names": ["gradient of heat", "heat", "square", "height", "width"],
    "first_law": "the gradient of heat",
}
