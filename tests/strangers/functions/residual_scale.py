import torch


class ResidualScale(torch.autograd.Function):
    """a * x + r, written into one workspace so that nothing is allocated per step"""

    workspace = torch.empty(0, dtype=torch.float64)

    @staticmethod
    def forward(ctx, x, r, a):
        cls = ResidualScale
        if cls.workspace.numel() < x.numel() or cls.workspace.dtype != x.dtype:
            cls.workspace = torch.empty(x.numel(), dtype=x.dtype)
        out = cls.workspace[: x.numel()].view(x.shape)
        torch.add(r, x, alpha=a, out=out)
        ctx.a = a
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.a, grad, None


def residual(x, r, a=0.5):
    return ResidualScale.apply(x, r, a)


function = residual
wrt = ("x", "r")


def calls():
    g = torch.Generator().manual_seed(42)
    x, r = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    return [((x, r), {}), ((r, x), {"a": 2.0})]


def primal(x, r, a=0.5):
    return r + a * x


def show():
    (x, r), _ = calls()[0]
    first = function(x, r)
    kept = first.clone()
    function(r, x, 3.0)
    return not torch.equal(first, kept)


TRUTH = {
    "sound": False,
    "defect": "All calls write into one workspace, so a second call overwrites the output of the first.",
    "rank": "wrong",
    "names": ["buffer", "second call", "overwrit", "shares memory", "earlier output", "between calls", "workspace", "two calls"],
    "first_law": "an output stays as it was when the function is called again",
}
