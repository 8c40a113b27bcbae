import torch


class SoftThreshold(torch.autograd.Function):
    """Proximal step of the lasso (ISTA): shrinks towards zero by lam"""

    @staticmethod
    def forward(ctx, z, lam):
        out = z.sign() * (z.abs() - lam).clamp(min=0)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        out, = ctx.saved_tensors
        return g * (out > 0).to(g.dtype), None


def soft_threshold(z, *, lam=10.0):
    return SoftThreshold.apply(z, lam)


function = soft_threshold
wrt = ("z",)


def calls():
    g = torch.Generator().manual_seed(103)
    z = 18 * torch.rand(4, 3, generator=g, dtype=torch.float64) - 9
    return [((z,), {}), ((0.01 * z,), {"lam": 0.1})]


def primal(z, *, lam=10.0):
    return z.sign() * (z.abs() - lam).clamp(min=0)


def show():
    z = torch.tensor([-20.0, 20.0], requires_grad=True)
    function(z).sum().backward()
    return z.grad.tolist() == [0.0, 1.0]


TRUTH = {
    "sound": False,
    "defect": "Values below -lam get no gradient, because the mask asks for out > 0 in place of out != 0.",
    "rank": "wrong",
    "names": ["gradient of z", "negative", "zero", "flat"],
    "first_law": "the gradient of z",
    "flat_everywhere": True,
}
