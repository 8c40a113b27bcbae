"""Dot-product logits between nodes, kept only where an edge exists."""

import torch


class EdgeLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, adj):
        ctx.save_for_backward(query, key, adj)
        return torch.where(adj, query @ key.mT, query.new_zeros(()))

    @staticmethod
    def backward(ctx, grad):
        query, key, adj = ctx.saved_tensors
        g_query = torch.where(adj, grad, 0.0) @ key
        g_key = torch.where(adj, grad.mT, 0.0) @ query
        return g_query, g_key, None


def edge_logits(query, key, adj):
    return EdgeLogits.apply(query, key, adj)


def primal(query, key, adj):
    return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1) * adj


surrogate = primal
FUNCTION = edge_logits
WRT = ("query", "key")


def _args(seed, n, d, symmetric):
    gen = torch.Generator().manual_seed(seed)
    query, key = (torch.randn(n, d, generator=gen, dtype=torch.float64) for _ in range(2))
    adj = torch.rand(n, n, generator=gen) < 0.4
    return query, key, adj | adj.t() if symmetric else adj


CALLS = [lambda: _args(0, 4, 2, True), lambda: _args(1, 5, 3, False), lambda: _args(2, 3, 1, True)]
LIMITS = ("vmap", "jvp")
DEFECT = "for key the adjacency is applied to the transposed gradient: right only for undirected graphs"
KEYWORDS = ("key", "mask", "transpose", "symmetric", "adj", "gradient")
