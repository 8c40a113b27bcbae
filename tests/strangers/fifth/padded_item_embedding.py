"""Item embeddings of a recommender; the padding item gets no gradient."""

import torch


class ItemEmbedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, items, padding_idx):
        ctx.save_for_backward(items)
        ctx.num_items = weight.shape[0]
        ctx.padding_idx = padding_idx
        return weight[items]

    @staticmethod
    def backward(ctx, grad):
        (items,) = ctx.saved_tensors
        flat = items.reshape(-1)
        rows = grad.reshape(flat.numel(), -1) * (flat != 0).unsqueeze(1)
        g = grad.new_zeros(ctx.num_items, rows.shape[1])
        return g.index_add(0, flat, rows), None, None


def item_embedding(weight, items, padding_idx):
    return ItemEmbedding.apply(weight, items, padding_idx)


def primal(weight, items, padding_idx):
    return torch.nn.functional.embedding(items, weight, padding_idx=padding_idx)


def surrogate(weight, items, padding_idx):
    rows = torch.arange(weight.shape[0]) != padding_idx
    return (weight * rows.unsqueeze(1))[items]


FUNCTION = item_embedding
WRT = ("weight",)


def _args(seed, n, d, shape, padding_idx):
    gen = torch.Generator().manual_seed(seed)
    weight = torch.randn(n, d, generator=gen, dtype=torch.float64)
    items = torch.randint(n, shape, generator=gen)
    items[..., -1] = padding_idx
    items[..., 0] = 0
    return weight, items, padding_idx


CALLS = [lambda: _args(0, 5, 3, (2, 4), 0), lambda: _args(1, 4, 2, (6,), 3), lambda: _args(2, 3, 1, (2, 3), 0)]
LIMITS = ("vmap", "jvp")
DEFECT = "backward takes row 0 as the padding whatever padding_idx is"
KEYWORDS = ("padding", "index", "option", "setting", "weight", "gradient")
