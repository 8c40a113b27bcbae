import torch


class TropicalMM(torch.autograd.Function):
    """C[i, j] = max_k A[i, k] + B[k, j]."""

    @staticmethod
    def forward(ctx, a, b):
        c = (a.unsqueeze(2) + b.unsqueeze(0)).amax(1)
        ctx.save_for_backward(a, b, c)
        return c

    @staticmethod
    def backward(ctx, grad_c):
        a, b, c = ctx.saved_tensors
        hit = (a.unsqueeze(2) + b.unsqueeze(0)) == c.unsqueeze(1)
        g = hit * grad_c.unsqueeze(1)
        return g.sum(2), g.sum(0)


function = TropicalMM.apply
wrt = ("a", "b")


def calls():
    g = torch.Generator().manual_seed(307)
    a = torch.randn(3, 4, generator=g, dtype=torch.float64)
    b = torch.randn(4, 2, generator=g, dtype=torch.float64)
    hops = torch.tensor([[0.0, -1.0, -2.0], [-1.0, 0.0, -1.0], [-2.0, -1.0, 0.0]], dtype=torch.float64)
    return [((a, b), {}), ((hops, hops.clone()), {})]


def primal(a, b):
    return (a[:, :, None] + b[None]).amax(dim=1)


def show():
    off = []
    for (a, b), _ in calls():
        a.requires_grad_()
        (mine,) = torch.autograd.grad(function(a, b).sum(), a)
        (true,) = torch.autograd.grad(primal(a, b).sum(), a)
        off.append((mine.sum() - true.sum()).abs().item())
    return off[0] < 1e-12 and off[1] > 0.5


TRUTH = {
    "sound": False,
    "defect": "Where several k reach the maximum each is given the whole gradient instead of a share: at ties the "
    "gradients add up to more than what came in.",
    "rank": "wrong",
    "names": ["tie", "ties", "maximum", "equal values", "gradient of a", "gradient of b"],
    "first_law": "the gradient at ties",
}
