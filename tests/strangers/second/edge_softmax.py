import torch


class EdgeSoftmax(torch.autograd.Function):
    """Softmax of the edge scores over the incoming edges of every node (GAT). scores (E, H), dst (E,)."""

    @staticmethod
    def forward(ctx, scores, dst, num_nodes):
        index = dst.unsqueeze(1).expand_as(scores)
        top = scores.new_full((num_nodes, scores.shape[1]), float("-inf"))
        top = top.scatter_reduce(0, index, scores, "amax")
        e = torch.exp(scores - top[dst])
        total = e.new_zeros(num_nodes, scores.shape[1]).index_add_(0, dst, e)
        alpha = e / total[dst]
        ctx.save_for_backward(alpha, dst)
        ctx.num_nodes = num_nodes
        return alpha

    @staticmethod
    def backward(ctx, grad_alpha):
        alpha, dst = ctx.saved_tensors
        ga = grad_alpha * alpha
        total = ga.new_zeros(ctx.num_nodes, ga.shape[1]).index_add(0, dst, ga)
        return ga - alpha * total[dst], None, None


def edge_softmax(scores, dst, num_nodes):
    return EdgeSoftmax.apply(scores, dst, num_nodes)


function = edge_softmax
wrt = ("scores",)


def calls():
    g = torch.Generator().manual_seed(111)
    s = torch.randn(8, 2, generator=g, dtype=torch.float64)
    dst = torch.tensor([0, 3, 3, 1, 0, 3, 4, 1])
    return [((s, dst, 5), {}), ((50 * s[:3, :1], dst[:3]), {"num_nodes": 6})]


def primal(scores, dst, num_nodes):
    same = dst[:, None] == dst[None, :]
    logits = scores.T[:, None, :].masked_fill(~same, float("-inf"))
    return torch.exp(scores - torch.logsumexp(logits, -1).T)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
