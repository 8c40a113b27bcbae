import torch


class MedianFilter(torch.autograd.Function):
    """Median of three neighbours along the last dimension, no padding"""

    @staticmethod
    def forward(ctx, x):
        value, where = x.unfold(-1, 3, 1).median(dim=-1)
        where = where + torch.arange(where.shape[-1])
        ctx.save_for_backward(where)
        ctx.length = x.shape[-1]
        return value

    @staticmethod
    def backward(ctx, grad):
        (where,) = ctx.saved_tensors
        gx = torch.zeros(*grad.shape[:-1], ctx.length, dtype=grad.dtype)
        gx.scatter_add_(-1, where, torch.zeros_like(gx))
        return gx


median3 = MedianFilter.apply
function = median3
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(118)
    return [
        ((torch.randn(4, 6, generator=g, dtype=torch.float64),), {}),
        ((torch.randn(9, generator=g, dtype=torch.float64),), {}),
    ]


def primal(x):
    return x.unfold(-1, 3, 1).median(dim=-1).values


def show():
    x = torch.randn(2, 7, requires_grad=True)
    function(x).sum().backward()
    return not x.grad.any()


TRUTH = {
    "sound": False,
    "defect": "Zeros are scattered in place of the incoming gradient, so the gradient is zero everywhere.",
    "rank": "wrong",
    "names": ["zero", "gradient of x", "flat", "dead"],
    "first_law": "the gradient of x",
    "flat_everywhere": False,
}
