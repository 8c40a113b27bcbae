import torch


class TukeyBiweight(torch.autograd.Function):
    """Redescending robust loss: beyond c the gradient is nought, on purpose."""

    @staticmethod
    def forward(ctx, r, c):
        ctx.save_for_backward(r)
        ctx.c = c
        inside = (1 - (r / c).square()).clamp(min=0)
        return c * c / 6 * (1 - inside.pow(3))

    @staticmethod
    def backward(ctx, grad):
        (r,) = ctx.saved_tensors
        inside = (1 - (r / ctx.c).square()).clamp(min=0)
        return grad * r * inside.square(), None


def tukey_biweight(residual, c=4.685):
    return TukeyBiweight.apply(residual, c)


function = tukey_biweight
wrt = ("residual",)


def calls():
    r = torch.tensor([-9.0, -4.0, -0.3, 0.0, 1.1, 4.6, 5.0, 30.0], dtype=torch.float64)
    return [((r,), {}), ((r.view(2, 4),), {"c": 2.0}), ((20 + r.abs(),), {})]


def primal(residual, c=4.685):
    x = residual / c
    poly = c**2 / 6 * (3 * x**2 - 3 * x**4 + x**6)
    return torch.where(x.abs() < 1, poly, torch.full_like(x, c**2 / 6))


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
