import torch


class GatherMessages(torch.autograd.Function):
    """Edge messages of a graph: features of the source node times a weight per edge."""

    @staticmethod
    def forward(ctx, x, src, edge_weight):
        ctx.save_for_backward(x, src, edge_weight)
        return x[src] * edge_weight[:, None]

    @staticmethod
    def backward(ctx, grad):
        x, src, edge_weight = ctx.saved_tensors
        gx = torch.zeros_like(x)
        gx[src] = grad * edge_weight[:, None]
        return gx, None, (grad * x[src]).sum(1)


def gather_messages(x, src, edge_weight):
    return GatherMessages.apply(x, src, edge_weight)


def primal(x, src, edge_weight):
    return torch.index_select(x, 0, src) * edge_weight.unsqueeze(1)


surrogate = primal
FUNCTION = gather_messages
WRT = ("x", "edge_weight")


def _args(seed, nodes, feats, src):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, feats, generator=gen, dtype=torch.float64)
    return x, torch.tensor(src), torch.randn(len(src), generator=gen, dtype=torch.float64)


CALLS = [
    lambda: _args(0, 4, 3, [2, 0, 3]),
    lambda: _args(1, 3, 2, [0, 0, 1, 2, 1, 0]),
    lambda: _args(2, 1, 1, [0, 0]),
]
LIMITS = ("vmap", "jvp", "compile")
DEFECT = "a node that sends several messages gets the gradient of one of them only (assignment instead of accumulation)"
KEYWORDS = ("x", "duplicate", "accumulate", "gradient")
