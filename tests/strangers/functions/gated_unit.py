import torch
from torch.autograd.function import once_differentiable


class GLUFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a)
        ctx.gate = torch.sigmoid(b)
        return a * ctx.gate

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, = ctx.saved_tensors
        gate = ctx.gate
        grad_a = grad * gate
        grad_b = grad * a * gate.mul_(1 - gate)
        return grad_a, grad_b


def glu(a, b):
    return GLUFunction.apply(a, b)


function = glu
wrt = ("a", "b")


def calls():
    g = torch.Generator().manual_seed(39)
    a, b = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    return [((a, b), {}), ((a[0], b[1]), {})]


def primal(a, b):
    return a * torch.sigmoid(b)


def show():
    (a, b), _ = calls()[0]
    out = function(a.requires_grad_(), b.requires_grad_()).sum()
    one = torch.autograd.grad(out, (a, b), retain_graph=True)
    two = torch.autograd.grad(out, (a, b), retain_graph=True)
    true = torch.autograd.grad(primal(a, b).sum(), (a, b))
    right = all(torch.allclose(p, q) for p, q in zip(one, true))
    return right and not torch.allclose(one[0], two[0])


TRUTH = {
    "sound": False,
    "defect": "backward overwrites the kept gate in place, so a second backward through the same graph gives other gradients.",
    "rank": "wrong",
    "names": ["second backward", "twice", "retain_graph", "repeat", "again", "same graph"],
    "first_law": "backward twice through the same graph gives the same gradients",
}
