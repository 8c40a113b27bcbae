import torch


class AdaptiveAvgPool1d(torch.autograd.Function):
    """Like nn.AdaptiveAvgPool1d, for exporters that do not know it. x (..., L) -> (..., out)."""

    @staticmethod
    def forward(ctx, x, out):
        L = x.shape[-1]
        ctx.L, ctx.out = L, out
        bins = [x[..., i * L // out : -(-(i + 1) * L // out)].mean(-1) for i in range(out)]
        return torch.stack(bins, -1)

    @staticmethod
    def backward(ctx, grad):
        L, out = ctx.L, ctx.out
        grad_x = grad.new_zeros(grad.shape[:-1] + (L,))
        size = L // out
        for i in range(out):
            grad_x[..., i * L // out : -(-(i + 1) * L // out)] += grad[..., i : i + 1] / size
        return grad_x, None


def adaptive_avg_pool1d(x, out=4):
    return AdaptiveAvgPool1d.apply(x, out)


function = adaptive_avg_pool1d
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(135)
    a = torch.randn(2, 3, 8, generator=g, dtype=torch.float64)
    b = torch.randn(2, 2, 7, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b, 3), {})]


def primal(x, out=4):
    flat = x.reshape(1, -1, x.shape[-1])
    return torch.nn.functional.adaptive_avg_pool1d(flat, out).reshape(x.shape[:-1] + (out,))


def show():
    off = []
    for (x, *rest), _ in calls():
        x.requires_grad_()
        (mine,) = torch.autograd.grad(function(x, *rest).sum(), x)
        (true,) = torch.autograd.grad(primal(x, *rest).sum(), x)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-12 and off[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward divides by the integer quotient L // out in place of the length of each window; wrong "
    "where out does not divide L.",
    "rank": "wrong",
    "names": ["gradient of x", "window", "integer division", "not divisible"],
    "first_law": "the gradient of x",
}
