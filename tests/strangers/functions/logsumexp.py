import torch


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(x, dim, keepdim):
        m = x.amax(dim, keepdim=True)
        m = torch.where(m.isfinite(), m, torch.zeros_like(m))
        out = (x - m).exp().sum(dim, keepdim=True).log() + m
        return out if keepdim else out.squeeze(dim)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, dim, keepdim = inputs
        ctx.save_for_backward(x, output)
        ctx.dim, ctx.keepdim = dim, keepdim

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        if not ctx.keepdim:
            grad, out = grad.unsqueeze(ctx.dim), out.unsqueeze(ctx.dim)
        return grad * (x - out).exp(), None, None


def logsumexp(x, dim=-1, keepdim=False):
    return LogSumExp.apply(x, dim, keepdim)


function = logsumexp
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(6)
    a = torch.randn(4, 3, generator=g, dtype=torch.float64)
    b = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    big = a * 400
    return [((a,), {}), ((b, 1), {}), ((b,), {"dim": -2, "keepdim": True}), ((big,), {})]


def primal(x, dim=-1, keepdim=False):
    return torch.logsumexp(x, dim, keepdim)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
