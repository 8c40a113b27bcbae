import torch


class ThinLens(torch.autograd.Function):
    """Image distance v of 1/v = 1/f - 1/u."""

    @staticmethod
    def forward(ctx, f, u):
        v = f * u / (u - f)
        ctx.save_for_backward(f, u)
        return v

    @staticmethod
    def backward(ctx, grad):
        f, u = ctx.saved_tensors
        v = f * u / (u - f)
        grad_f = grad * (v / f) ** 2
        grad_u = -grad * (v / u) ** 2
        return grad_u, grad_f


def thin_lens(f, u):
    return ThinLens.apply(f, u)


function = thin_lens
wrt = ("f", "u")


def calls():
    f = torch.tensor([0.05, 0.2, 0.3], dtype=torch.float64)
    u = torch.tensor([0.6, 1.0, 0.5], dtype=torch.float64)
    return [((f, u), {}), ((f[1], u[2]), {})]


def primal(f, u):
    return 1 / (1 / f - 1 / u)


def show():
    (f, u), _ = calls()[0]
    f.requires_grad_(), u.requires_grad_()
    mine = torch.autograd.grad(function(f, u).sum(), (f, u))
    true = torch.autograd.grad(primal(f, u).sum(), (f, u))
    return torch.allclose(mine[0], true[1]) and torch.allclose(mine[1], true[0])


TRUTH = {
    "sound": False,
    "defect": "The gradients of the two arguments are returned in the wrong order.",
    "rank": "wrong",
    "names": ["swapped", "order", "exchanged", "gradient of f", "gradient of u"],
    "first_law": "the gradient of f",
}
