import torch
import torch.nn.functional as F


class TakeColumns(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.rest = x.shape[-1] - k
        return x[..., :k]

    @staticmethod
    def backward(ctx, grad_output):
        return F.pad(grad_output, (0, ctx.rest)), None


def take_columns(x, k):
    return TakeColumns.apply(x, k)


function = take_columns
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(40)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    y = torch.randn(2, 2, 5, generator=g, dtype=torch.float64)
    return [((x, 2), {}), ((y, 3), {})]


def primal(x, k):
    return x[..., :k].clone()


def show():
    x = torch.tensor([[-1.0, 2.0, -3.0]], requires_grad=True)
    y = function(x, 2)
    try:
        F.relu_(y)  # nn.ReLU(inplace=True) after it
        refused = False
    except RuntimeError:
        refused = True
    with torch.no_grad():
        F.relu_(function(x, 2))
    return refused and x.tolist() == [[0.0, 2.0, -3.0]]


TRUTH = {
    "sound": False,
    "defect": "The output is a view of the input: an in-place operation after it raises in training, and under no_grad it overwrites the input.",
    "rank": "wrong",
    "names": ["view", "alias", "shares memory", "memory of", "same storage"],
    "first_law": "the output has memory of its own",
}
