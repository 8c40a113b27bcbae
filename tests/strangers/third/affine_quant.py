import torch


class AffineQuantSTE(torch.autograd.Function):
    """4-bit affine fake quantization with a learned zero point; the rounding passes the gradient straight through."""

    @staticmethod
    def forward(ctx, x, zero, scale):
        u = x / scale + zero
        ctx.save_for_backward((u >= 0) & (u <= 15))
        ctx.scale = scale
        return scale * (u.round().clamp(0, 15) - zero)

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        g_x = grad * inside
        g_zero = (grad * ~inside).sum() * ctx.scale
        return g_x, g_zero, None


def affine_quant(x, zero, scale=0.25):
    return AffineQuantSTE.apply(x, zero, scale)


function = affine_quant
wrt = ("x", "zero")


def calls():
    g = torch.Generator().manual_seed(338)
    x = 2 * torch.randn(4, 5, generator=g, dtype=torch.float64)
    z = torch.tensor(6.3, dtype=torch.float64)
    return [((x, z), {}), ((0.1 * x, z), {"scale": 0.2})]


def primal(x, zero, scale=0.25):
    return (torch.clamp(torch.round(x / scale + zero), 0, 15) - zero) * scale


def surrogate(x, zero, scale=0.25):
    return (torch.clamp(x / scale + zero, 0, 15) - zero) * scale


def show():
    (x, z), _ = calls()[0]
    z.requires_grad_()
    (mine,) = torch.autograd.grad(function(x, z).sum(), z)
    (true,) = torch.autograd.grad(surrogate(x, z).sum(), z)
    return torch.allclose(mine, -true) and abs(true.item()) > 0.1


TRUTH = {
    "sound": False,
    "defect": "The gradient of the zero point has the wrong sign: where clipped, the value falls with it by scale.",
    "rank": "wrong",
    "names": ["zero", "sign", "zero point", "gradient of zero"],
    "first_law": "the gradient of zero",
}
