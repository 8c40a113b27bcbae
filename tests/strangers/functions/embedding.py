import torch
from torch import nn


class EmbeddingLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, idx):
        ctx.save_for_backward(idx)
        ctx.rows = weight.shape[0]
        return weight[idx]

    @staticmethod
    def backward(ctx, grad_output):
        (idx,) = ctx.saved_tensors
        grad_weight = grad_output.new_zeros(ctx.rows, grad_output.shape[-1])
        grad_weight[idx] += grad_output
        return grad_weight, None


class TokenEmbedding(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab, dim))

    def forward(self, tokens):
        return EmbeddingLookup.apply(self.weight, tokens)


function = EmbeddingLookup.apply
wrt = ("weight",)


def calls():
    g = torch.Generator().manual_seed(59)
    w = torch.randn(6, 3, generator=g, dtype=torch.float64)
    return [
        ((w, torch.tensor([4, 0, 2])), {}),
        ((w, torch.tensor([[1, 5], [1, 3]])), {}),
    ]


def primal(weight, idx):
    return weight[idx]


def show():
    w = torch.zeros(3, 2, requires_grad=True)
    function(w, torch.tensor([1, 1, 1])).sum().backward()
    return w.grad[1].tolist() == [1.0, 1.0]  # 3 is right


TRUTH = {
    "sound": False,
    "defect": "Where an index occurs more than once only one of its gradients is kept: += with an index does not accumulate.",
    "rank": "wrong",
    "names": ["gradient of weight", "weight", "repeated", "duplicate", "index"],
    "first_law": "the gradient of weight for repeated indices",
}
