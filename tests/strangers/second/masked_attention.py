import torch
from torch.autograd.function import once_differentiable


class MaskedAttention(torch.autograd.Function):
    """Softmax over the keys the mask lets through. scores (..., Tq, Tk), mask broadcastable bool."""

    @staticmethod
    def forward(ctx, scores, mask):
        p = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_p):
        (p,) = ctx.saved_tensors
        weighted = grad_p.mul_(p)
        return weighted - p * weighted.sum(-1, keepdim=True), None


def masked_attention(scores, mask):
    return MaskedAttention.apply(scores, mask)


function = masked_attention
wrt = ("scores",)


def calls():
    g = torch.Generator().manual_seed(131)
    s = torch.randn(2, 2, 4, 4, generator=g, dtype=torch.float64)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    pad = torch.tensor([[True, True, True, False]])
    return [((s, causal), {}), ((s[0, 0], pad), {})]


def primal(scores, mask):
    e = torch.exp(scores - scores.amax(-1, keepdim=True)) * mask
    return e / e.sum(-1, keepdim=True)


def show():
    (s, mask), _ = calls()[0]
    s.requires_grad_()
    v = torch.randn(s.shape, generator=torch.Generator().manual_seed(0), dtype=s.dtype)
    kept = v.clone()
    (mine,) = torch.autograd.grad(function(s, mask), s, v)
    (true,) = torch.autograd.grad(primal(s, mask), s, kept)
    return torch.allclose(mine, true) and not torch.equal(v, kept)


TRUTH = {
    "sound": False,
    "defect": "backward multiplies the incoming gradient in place, so whoever else holds it sees it changed.",
    "rank": "wrong",
    "names": ["in place", "incoming gradient", "grad_output", "cotangent", "mutated"],
    "first_law": "the incoming gradient is changed",
}
