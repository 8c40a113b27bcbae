import torch
from torch import nn


class BagFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, ids, pad):
        keep = ids != pad
        count = keep.sum(1, keepdim=True).clamp(min=1)
        ctx.save_for_backward(ids, keep)
        ctx.rows = table.shape[0]
        return (table[ids] * keep.unsqueeze(-1)).sum(1) / count

    @staticmethod
    def backward(ctx, grad):
        ids, keep = ctx.saved_tensors
        per_token = (grad / ids.shape[1]).unsqueeze(1) * keep.unsqueeze(-1)
        out = grad.new_zeros(ctx.rows, grad.shape[1])
        out = out.index_add(0, ids.reshape(-1), per_token.reshape(-1, grad.shape[1]))
        return out, None, None


class TokenBag(nn.Module):
    """Mean of the embeddings of the tokens that are not padding."""

    def __init__(self, words=7, dim=3, pad=0):
        super().__init__()
        g = torch.Generator().manual_seed(303)
        self.table = nn.Parameter(torch.randn(words, dim, generator=g, dtype=torch.float64))
        self.pad = pad

    def forward(self, ids):
        return BagFunction.apply(self.table, ids, self.pad)


module = TokenBag
wrt = ("table",)


def calls():
    full = torch.tensor([[1, 2, 6, 2], [4, 5, 5, 5]])
    padded = torch.tensor([[3, 1, 0, 0], [6, 6, 2, 0]])
    return [((full,), {}), ((padded,), {})]


def primal(model, ids):
    weight = torch.nn.functional.one_hot(ids, len(model.table)) * (ids != model.pad).unsqueeze(-1)
    count = weight.sum(1).to(model.table)
    return count @ model.table / count.sum(1, keepdim=True).clamp(min=1)


def show():
    m, off = module(), []
    for (ids,), _ in calls():
        (mine,) = torch.autograd.grad(m(ids).sum(), m.table)
        (true,) = torch.autograd.grad(primal(m, ids).sum(), m.table)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-12 and off[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward divides by the length with padding, forward by the count of tokens that are not padding; "
    "right only where there is none.",
    "rank": "wrong",
    "names": ["table", "padding", "count", "length", "mean", "divide"],
    "first_law": "the gradient of table",
}
