import torch
from torch.autograd import Function


class SortDescending(Function):
    @staticmethod
    def forward(ctx, scores):
        values, order = torch.sort(scores, dim=-1, descending=True)
        ctx.save_for_backward(order)
        ctx.mark_non_differentiable(order)
        return values, order

    @staticmethod
    def backward(ctx, grad_values, grad_order):
        order, = ctx.saved_tensors
        return torch.zeros_like(grad_values).scatter(-1, order, grad_values)


function = SortDescending.apply
wrt = ("scores",)


def calls():
    g = torch.Generator().manual_seed(7)
    a = torch.randn(4, 3, generator=g, dtype=torch.float64)
    b = torch.randn(7, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def primal(scores):
    return torch.sort(scores, dim=-1, descending=True)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
