import torch


class AttentionPool(torch.autograd.Function):
    """Pools the states of every sentence with softmax(h @ query). h (batch, time, dim) -> (batch, dim)."""

    @staticmethod
    def forward(ctx, h, query):
        alpha = torch.softmax(h @ query, dim=1)
        ctx.save_for_backward(h, query)
        return torch.bmm(alpha.unsqueeze(1), h).squeeze()

    @staticmethod
    def backward(ctx, grad):
        h, query = ctx.saved_tensors
        alpha = torch.softmax(h @ query, dim=1)
        grad = grad.reshape(h.shape[0], 1, h.shape[2])
        g_alpha = (grad * h).sum(-1)
        g_score = alpha * (g_alpha - (alpha * g_alpha).sum(1, keepdim=True))
        g_h = alpha.unsqueeze(-1) * grad + g_score.unsqueeze(-1) * query
        return g_h, torch.einsum("bt,btd->d", g_score, h)


def attention_pool(h, query):
    return AttentionPool.apply(h, query)


function = attention_pool
wrt = ("h", "query")


def calls():
    g = torch.Generator().manual_seed(321)
    h = torch.randn(3, 4, 2, generator=g, dtype=torch.float64)
    q = torch.randn(2, generator=g, dtype=torch.float64)
    return [((h, q), {}), ((h[:1], q), {})]


def primal(h, query):
    alpha = torch.softmax(torch.einsum("btd,d->bt", h, query), 1)
    return torch.einsum("bt,btd->bd", alpha, h)


def show():
    (a, _), (b, _) = calls()
    return torch.allclose(function(*a), primal(*a)) and function(*b).shape != primal(*b).shape


TRUTH = {
    "sound": False,
    "defect": "squeeze() without a dimension: for a batch of one the batch axis goes as well and the value has shape "
    "(dim,) instead of (1, dim).",
    "rank": "wrong",
    "names": ["shape", "squeeze", "batch of one", "value", "dimension"],
    "first_law": "the values",
}
