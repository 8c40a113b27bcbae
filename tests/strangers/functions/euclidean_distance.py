import torch


class EuclideanDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        diff = x - y
        dist = diff.pow(2).sum(dim=1).sqrt()
        ctx.save_for_backward(x, y, dist)
        return dist

    @staticmethod
    def backward(ctx, grad_dist):
        x, y, dist = ctx.saved_tensors
        g = (grad_dist / dist).unsqueeze(1) * (x - y)
        return g, -g


pair_distance = EuclideanDistance.apply
function = pair_distance
wrt = ("x", "y")


def calls():
    g = torch.Generator().manual_seed(29)
    x, y = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    twin = y.clone()
    twin[1] = x[1]  # the same picture twice in the batch
    return [((x, y), {}), ((x, twin), {})]


def primal(x, y):
    return torch.linalg.vector_norm(x - y, dim=1)


def show():
    (x, y), _ = calls()[1]
    x.requires_grad_()
    (mine,) = torch.autograd.grad(function(x, y).sum(), x)
    (true,) = torch.autograd.grad(primal(x, y).sum(), x)
    return bool(mine[1].isnan().all()) and bool(true.isfinite().all())


TRUTH = {
    "sound": False,
    "defect": "Where x and y are the same point the distance is 0 and the gradient is 0/0 = NaN.",
    "rank": "wrong",
    "names": ["NaN", "nan", "not finite", "non-finite", "zero"],
    "first_law": "the gradient of x is finite at distance zero",
}
