import torch


def _keep(weight, p):
    return (torch.rand(weight.shape[0], device=weight.device) >= p).to(weight.dtype) / (1 - p)


class DropEdge(torch.autograd.Function):
    """Drop every edge of a graph with probability p and scale the others by 1 / (1 - p).

    weight (E, H): one weight per edge and head; all heads of an edge go together.
    """

    @staticmethod
    def forward(ctx, weight, p):
        ctx.p = p
        return weight * _keep(weight, p).unsqueeze(1)

    @staticmethod
    def backward(ctx, grad):
        return grad * _keep(grad, ctx.p).unsqueeze(1), None


def drop_edge(weight, p=0.5, training=True):
    if not training or p == 0:
        return weight.clone()
    return DropEdge.apply(weight, p)


function = drop_edge
wrt = ("weight",)


def calls():
    g = torch.Generator().manual_seed(151)
    w = 0.1 + torch.rand(24, 2, generator=g, dtype=torch.float64)
    return [((w,), {}), ((w[:10],), {"p": 0.2})]


primal = None


def show():
    torch.manual_seed(1)
    (w,), _ = calls()[0]
    w.requires_grad_()
    out = function(w)
    (grad,) = torch.autograd.grad(out.sum(), w)
    return not torch.equal(out != 0, grad != 0)


TRUTH = {
    "sound": False,
    "defect": "backward draws the mask anew, so the gradient belongs to other edges than were kept.",
    "rank": "wrong",
    "names": ["mask", "random", "redrawn", "noise", "gradient of weight", "drawn anew"],
    "first_law": "the gradient of weight",
}
