import torch


class PyramidSum(torch.autograd.Function):
    """sum_i weights[i] * level_i, all levels brought to one size beforehand."""

    @staticmethod
    def forward(ctx, weights, *levels):
        ctx.save_for_backward(weights, *levels)
        return sum(w * x for w, x in zip(weights.unbind(), levels, strict=True))

    @staticmethod
    def backward(ctx, grad):
        weights, *levels = ctx.saved_tensors
        grads = []
        while levels:
            x = levels.pop()
            grads.append((grad * x).sum())
        g_weights = torch.stack(grads[::-1])
        g_levels = [w * grad for w in reversed(weights.unbind())]
        return (g_weights, *g_levels)


def pyramid_sum(weights, levels):
    return PyramidSum.apply(weights, *levels)


function = pyramid_sum
wrt = ("weights", "levels")


def calls():
    g = torch.Generator().manual_seed(325)
    levels = list(torch.randn(3, 2, 4, generator=g, dtype=torch.float64).unbind())
    w = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    return [((w, levels), {}), ((w[:2], levels[:2]), {})]


def primal(weights, levels):
    return torch.tensordot(weights, torch.stack(levels), dims=1)


def show():
    (w, levels), _ = calls()[0]
    for x in levels:
        x.requires_grad_()
    mine = torch.autograd.grad(function(w, levels).sum(), levels)
    true = torch.autograd.grad(primal(w, levels).sum(), levels)
    crossed = all(torch.allclose(m, t) for m, t in zip(mine, true[::-1], strict=True))
    return crossed and not torch.allclose(mine[0], true[0])


TRUTH = {
    "sound": False,
    "defect": "The gradients of the levels come back in reversed order: the first level is given that of the last.",
    "rank": "wrong",
    "names": ["levels", "order", "reversed", "swapped", "gradient of levels"],
    "first_law": "the gradients of levels",
}
