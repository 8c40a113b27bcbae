import torch


class ValueChroma(torch.autograd.Function):
    """Value and chroma of RGB pixels (..., 3): the largest channel, and largest minus smallest."""

    @staticmethod
    def forward(ctx, rgb):
        ctx.set_materialize_grads(False)
        high, i = rgb.max(-1)
        low, j = rgb.min(-1)
        ctx.save_for_backward(i, j)
        return high, high - low

    @staticmethod
    def backward(ctx, g_value, g_chroma):
        if g_value is None or g_chroma is None:
            return None
        i, j = ctx.saved_tensors
        out = g_value.new_zeros((*g_value.shape, 3))
        out = out.scatter_add(-1, i.unsqueeze(-1), (g_value + g_chroma).unsqueeze(-1))
        return out.scatter_add(-1, j.unsqueeze(-1), -g_chroma.unsqueeze(-1))


def value_chroma(rgb):
    return ValueChroma.apply(rgb)


function = value_chroma
wrt = ("rgb",)


def calls():
    g = torch.Generator().manual_seed(341)
    x = torch.rand(2, 4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {})]


def primal(rgb):
    high = rgb.max(-1).values
    return high, high - rgb.min(-1).values


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    both = torch.autograd.grad(sum(function(x)).sum(), x)[0]
    right = torch.allclose(both, torch.autograd.grad(sum(primal(x)).sum(), x)[0])
    alone = torch.autograd.grad(function(x)[1].sum(), x, allow_unused=True)[0]
    return right and alone is None


TRUTH = {
    "sound": False,
    "defect": "set_materialize_grads(False), and backward gives up when either incoming gradient is None: a loss on "
    "only one of the two outputs has no gradient.",
    "rank": "wrong",
    "names": ["None", "one output", "unused", "materialize", "only", "output alone", "second output"],
    "first_law": "the gradient of one output alone",
}
