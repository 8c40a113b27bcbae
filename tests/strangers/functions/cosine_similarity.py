import torch


class CosineSim(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        na = a.norm(dim=-1, keepdim=True)
        nb = b.norm(dim=-1, keepdim=True)
        ua, ub = a / na, b / nb
        cos = (ua * ub).sum(-1, keepdim=True)
        grad = grad.unsqueeze(-1)
        da = grad * (ub - cos * ua) / na
        db = grad * (ua - cos * ub) / nb
        return db, da


def cosine(a, b):
    return CosineSim.apply(a, b)


function = cosine
wrt = ("a", "b")


def calls():
    g = torch.Generator().manual_seed(24)
    a, b = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    c, d = torch.randn(2, 6, generator=g, dtype=torch.float64)
    return [((a, b), {}), ((c, 2 * d), {})]


def primal(a, b):
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def show():
    (a, b), _ = calls()[0]
    a.requires_grad_(), b.requires_grad_()
    mine = torch.autograd.grad(function(a, b).sum(), (a, b))
    true = torch.autograd.grad(primal(a, b).sum(), (a, b))
    return torch.allclose(mine[0], true[1]) and not torch.allclose(mine[0], true[0])


TRUTH = {
    "sound": False,
    "defect": "The gradients of a and b are returned in the wrong order.",
    "rank": "wrong",
    "names": ["swap", "order", "exchanged", "gradient of a", "a and b", "argument 0"],
    "first_law": "the gradient of a",
}
