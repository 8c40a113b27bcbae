import torch
from torch.autograd import Function


class SignedPower(Function):
    """Power-law companding that keeps the sign: sign(x) |x|^p."""

    @staticmethod
    def forward(ctx, x, p):
        ctx.save_for_backward(x)
        ctx.p = p
        return x.sign() * x.abs().pow(p)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.p * x.sign() * x.abs().pow(ctx.p - 1), None


class Compander(torch.nn.Module):
    def __init__(self, p=1.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        return SignedPower.apply(x, self.p)


module = Compander
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(308)
    x = torch.randn(2, 9, generator=g, dtype=torch.float64)
    return [((x.abs() + 0.1,), {}), ((x,), {})]


def primal(model, x):
    return torch.where(x >= 0, x.abs() ** model.p, -(x.abs() ** model.p))


def show():
    m, off = module(), []
    for (x,), _ in calls():
        x.requires_grad_()
        (mine,) = torch.autograd.grad(m(x).sum(), x)
        (true,) = torch.autograd.grad(primal(m, x).sum(), x)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-12 and off[1] > 0.1


TRUTH = {
    "sound": False,
    "defect": "The sign is multiplied into the derivative, which is p |x|^(p-1) on both sides: wrong sign for negative "
    "input.",
    "rank": "wrong",
    "names": ["gradient of x", "sign", "negative"],
    "first_law": "the gradient of x",
}
