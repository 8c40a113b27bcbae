import torch


class HardSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x / 6 + 0.5).clamp(0, 1)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return grad_output * ((x > -3) & (x < 3)).to(x.dtype)


function = HardSigmoid.apply
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(112)
    x = 4 * torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[:2],), {})]


def primal(x):
    return ((x + 3) / 6).clamp(0, 1)


def show():
    x = torch.zeros(1, requires_grad=True)
    function(x).sum().backward()
    return x.grad.item() == 1.0


TRUTH = {
    "sound": False,
    "defect": "The slope is 1/6, backward uses 1.",
    "rank": "wrong",
    "names": ["factor", "off by", "scale", "times", "gradient of x"],
    "first_law": "the gradient of x",
    "flat_everywhere": False,
}
