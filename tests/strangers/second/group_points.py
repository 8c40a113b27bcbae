import torch


class GroupPoints(torch.autograd.Function):
    """Gather the features of ball-query neighbours (PointNet++).

    features (B, C, N), idx (B, S, K) -> (B, C, S, K)
    """

    @staticmethod
    def forward(ctx, features, idx):
        B, C, N = features.shape
        ctx.save_for_backward(idx)
        ctx.N = N
        flat = idx.reshape(B, 1, -1).expand(-1, C, -1)
        return features.gather(2, flat).reshape(B, C, *idx.shape[1:])

    @staticmethod
    def backward(ctx, grad_out):
        (idx,) = ctx.saved_tensors
        B, C = grad_out.shape[:2]
        grads = []
        for b in range(B):
            grad = grad_out.new_zeros(C, ctx.N)
            grad[:, idx[b].reshape(-1)] += grad_out[b].reshape(C, -1)
            grads.append(grad)
        return torch.stack(grads), None


def group_points(features, idx):
    return GroupPoints.apply(features, idx)


function = group_points
wrt = ("features",)


def calls():
    g = torch.Generator().manual_seed(143)
    f = torch.randn(2, 3, 8, generator=g, dtype=torch.float64)
    apart = torch.stack([torch.randperm(8, generator=g)[:6].view(3, 2) for _ in range(2)])
    # a ball with too few points repeats its first one
    ball = torch.tensor([[[0, 4, 0], [3, 3, 3]], [[1, 2, 5], [2, 7, 2]]])
    return [((f, apart), {}), ((f, ball), {})]


def primal(features, idx):
    return torch.stack([f[:, i] for f, i in zip(features, idx)])


def show():
    off = []
    for (f, idx), _ in calls():
        f.requires_grad_()
        (mine,) = torch.autograd.grad(function(f, idx).sum(), f)
        (true,) = torch.autograd.grad(primal(f, idx).sum(), f)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-12 and off[1] >= 1


TRUTH = {
    "sound": False,
    "defect": "Indices that occur more than once get the gradient of one occurrence only; it is not accumulated.",
    "rank": "wrong",
    "names": ["repeated", "duplicate", "accumulate", "gradient of features", "features"],
    "first_law": "the gradient of features",
}
