import torch


class AdditiveScores(torch.autograd.Function):
    """Bahdanau scores of self-attention: v . tanh(q_i + k_j), q and k (B, T, D), v (D,) -> (B, T, T)."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)) @ v

    @staticmethod
    def backward(ctx, grad_scores):
        q, k, v = ctx.saved_tensors
        h = torch.tanh(q.unsqueeze(2) + k.unsqueeze(1))
        g = grad_scores.unsqueeze(-1)
        d = g * v * (1 - h * h)
        return d.sum(2), d.sum(2), (g * h).sum((0, 1, 2))


def additive_scores(q, k, v):
    return AdditiveScores.apply(q, k, v)


function = additive_scores
wrt = ("q", "k", "v")


def calls():
    g = torch.Generator().manual_seed(125)
    q, k = torch.randn(2, 2, 5, 3, generator=g, dtype=torch.float64)
    v = torch.randn(3, generator=g, dtype=torch.float64)
    return [((q, k, v), {}), ((q[:1, :2], k[:1, :2], v), {})]


def primal(q, k, v):
    return ((q[:, :, None] + k[:, None]).tanh() * v).sum(-1)


def show():
    (q, k, v), _ = calls()[0]
    k.requires_grad_()
    (mine,) = torch.autograd.grad(function(q, k, v).sum(), k)
    (true,) = torch.autograd.grad(primal(q, k, v).sum(), k)
    return mine.shape == true.shape and not torch.allclose(mine, true)


TRUTH = {
    "sound": False,
    "defect": "The gradient of k is summed over the axis of the keys where it must be summed over the queries.",
    "rank": "wrong",
    "names": ["gradient of k", "keys", "axis", "wrong dimension", "summed"],
    "first_law": "the gradient of k",
}
