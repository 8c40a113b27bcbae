import torch


class RowDropout(torch.autograd.Function):
    """Drops whole rows (DropPath). The mask is not stored, to save memory."""

    @staticmethod
    def _mask(x, p):
        shape = (x.shape[0],) + (1,) * (x.dim() - 1)
        return (torch.rand(shape, dtype=x.dtype) >= p).to(x.dtype) / (1 - p)

    @staticmethod
    def forward(ctx, x, p):
        ctx.p = p
        return x * RowDropout._mask(x, p)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * RowDropout._mask(grad_output, ctx.p), None


def drop_path(x, p=0.5):
    return RowDropout.apply(x, p)


function = drop_path
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(43)
    x = torch.randn(8, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x.reshape(6, 2, 2), 0.3), {})]


primal = None


def show():
    torch.manual_seed(0)
    x = torch.ones(64, 2, dtype=torch.float64, requires_grad=True)
    y = drop_path(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    return not torch.equal(g, y.detach())


TRUTH = {
    "sound": False,
    "defect": "backward draws a new mask and does not use that of forward, so gradients flow through dropped rows and not through kept ones.",
    "rank": "wrong",
    "names": ["noise", "random", "mask", "drawn", "RNG", "gradient of x"],
    "first_law": "the gradient of x for the noise that forward drew",
}
