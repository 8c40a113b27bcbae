import torch


class BilinearLookup(torch.autograd.Function):
    """Reads image (H, W) at points xy (N, 2) in pixels; points outside read the nearest border pixel."""

    @staticmethod
    def forward(ctx, image, xy):
        h, w = image.shape
        x = xy[:, 0].clamp(0, w - 1)
        y = xy[:, 1].clamp(0, h - 1)
        x0 = x.floor().long().clamp(max=w - 2)
        y0 = y.floor().long().clamp(max=h - 2)
        fx, fy = x - x0, y - y0
        ctx.save_for_backward(image, x0, y0, fx, fy)
        top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
        low = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
        return top * (1 - fy) + low * fy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        image, x0, y0, fx, fy = ctx.saved_tensors
        a, b = image[y0, x0], image[y0, x0 + 1]
        c, d = image[y0 + 1, x0], image[y0 + 1, x0 + 1]
        gx = ((b - a) * (1 - fy) + (d - c) * fy) * g
        gy = ((c - a) * (1 - fx) + (d - b) * fx) * g
        gi = torch.zeros_like(image)
        gi.index_put_((y0, x0), g * (1 - fx) * (1 - fy), accumulate=True)
        gi.index_put_((y0, x0 + 1), g * fx * (1 - fy), accumulate=True)
        gi.index_put_((y0 + 1, x0), g * (1 - fx) * fy, accumulate=True)
        gi.index_put_((y0 + 1, x0 + 1), g * fx * fy, accumulate=True)
        return gi, torch.stack([gx, gy], 1)


def bilinear_lookup(image, xy):
    return BilinearLookup.apply(image, xy)


function = bilinear_lookup
wrt = ("image", "xy")


def calls():
    g = torch.Generator().manual_seed(309)
    im = torch.randn(4, 5, generator=g, dtype=torch.float64)
    inside = torch.tensor([[0.3, 1.6], [3.2, 2.7], [1.5, 0.1]], dtype=torch.float64)
    outside = torch.tensor([[-1.2, 1.4], [2.3, 5.5], [4.9, 1.7]], dtype=torch.float64)
    return [((im, inside), {}), ((im, outside), {})]


def primal(image, xy):
    h, w = image.shape
    x, y = xy[:, 0].clamp(0, w - 1), xy[:, 1].clamp(0, h - 1)
    wx = torch.relu(1 - (x[:, None] - torch.arange(w, dtype=x.dtype)).abs())
    wy = torch.relu(1 - (y[:, None] - torch.arange(h, dtype=x.dtype)).abs())
    return torch.einsum("nh,hw,nw->n", wy, image, wx)


def show():
    off = []
    for (im, xy), _ in calls():
        xy.requires_grad_()
        (mine,) = torch.autograd.grad(function(im, xy).sum(), xy)
        (true,) = torch.autograd.grad(primal(im, xy).sum(), xy)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-10 and off[1] > 0.1


TRUTH = {
    "sound": False,
    "defect": "Forward clamps points to the picture, backward does not know of it: a point outside has the slope of "
    "the border cell where the value does not change with it.",
    "rank": "wrong",
    "names": ["gradient of xy", "clamp", "border", "outside", "edge"],
    "first_law": "the gradient of xy",
}
