import torch


class SmoothStep(torch.autograd.Function):
    """the shader function: 0 below lo, 1 above hi, cubic between"""

    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        t = ((x - lo) / (hi - lo)).clamp(0, 1)
        return t * t * (3 - 2 * t)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        t = ((x - ctx.lo) / (ctx.hi - ctx.lo)).clamp(0, 1)
        return grad_output * 6 * t * (1 - t), None, None


def smoothstep(x, lo=-0.5, hi=1.5):
    return SmoothStep.apply(x, lo, hi)


function = smoothstep
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(111)
    x = 2 + 7 * torch.rand(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((-x,), {}), ((x, 10.0, 30.0), {})]


def primal(x, lo=-0.5, hi=1.5):
    t = ((x - lo) / (hi - lo)).clamp(0, 1)
    return t * t * (3 - 2 * t)


def show():
    x = torch.tensor([0.0, 0.5, 1.0], requires_grad=True)
    mine, true = [torch.autograd.grad(f(x).sum(), x)[0] for f in (function, primal)]
    return torch.allclose(mine, 2 * true)


TRUTH = {
    "sound": False,
    "defect": "Between lo and hi the gradient lacks the division by hi - lo.",
    "rank": "wrong",
    "names": ["factor", "off by", "scale", "times", "gradient of x"],
    "first_law": "the gradient of x",
    "flat_everywhere": True,
}
