import torch


class SlidingMean(torch.autograd.Function):
    """Moving average along the last dimension of a (batch, time) tensor."""

    @staticmethod
    def forward(ctx, x, k):
        n, t = x.shape
        windows = torch.as_strided(x, (n, t - k + 1, k), (t, 1, 1))
        ctx.k, ctx.t = k, t
        return windows.mean(-1)

    @staticmethod
    def backward(ctx, grad):
        gx = grad.new_zeros(grad.shape[0], ctx.t)
        m = grad.shape[1]
        for j in range(ctx.k):
            gx[:, j : j + m] += grad / ctx.k
        return gx, None


def sliding_mean(x, k=3):
    return SlidingMean.apply(x, k)


function = sliding_mean
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(30)
    x = torch.randn(4, 6, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x,), {"k": 2})]


def primal(x, k=3):
    return x.unfold(1, k, 1).mean(-1)


def show():
    x = torch.arange(12.0, dtype=torch.float64).reshape(4, 3).t()
    same = torch.allclose(function(x.contiguous()), primal(x))
    return same and not torch.allclose(function(x), primal(x))


TRUTH = {
    "sound": False,
    "defect": "The windows are cut with the strides of a contiguous tensor, so a transposed or sliced input gives wrong values.",
    "rank": "wrong",
    "names": ["contiguous", "stride", "layout", "transposed", "memory"],
    "first_law": "the same values for a non-contiguous input",
}
