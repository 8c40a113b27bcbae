import torch


class ReLU6(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(0, 6)

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        mask = (x < 0) & (x > 6)
        return dy * mask.to(dy.dtype)


relu6 = ReLU6.apply
function = relu6
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(102)
    neg = -2 - 7 * torch.rand(4, 3, generator=g, dtype=torch.float64)
    big = 7 + 2 * torch.rand(2, 3, generator=g, dtype=torch.float64)
    return [((neg,), {}), ((torch.cat([neg, big]),), {})]


def primal(x):
    return x.clamp(0, 6)


def show():
    x = torch.linspace(-10, 10, 50, requires_grad=True)
    function(x).sum().backward()
    return not x.grad.any()


TRUTH = {
    "sound": False,
    "defect": "The mask asks for x < 0 and x > 6 at once, so backward is zero everywhere.",
    "rank": "wrong",
    "names": ["zero", "gradient of x", "flat", "dead", "mask"],
    "first_law": "the gradient of x",
    "flat_everywhere": True,
}
