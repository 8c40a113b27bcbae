import torch


class OnlineLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.matmul(weight.t())

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output.matmul(weight)
        if ctx.needs_input_grad[1]:
            # one sample at a time: delta rule
            grad_w = torch.outer(grad_output[0], x[0])
        return grad_x, grad_w


def linear(x, weight):
    return OnlineLinear.apply(x, weight)


function = linear
wrt = ("x", "weight")


def calls():
    g = torch.Generator().manual_seed(33)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    w = torch.randn(2, 3, generator=g, dtype=torch.float64)
    return [((x[:1], w), {}), ((x, w), {})]


def primal(x, weight):
    return x @ weight.t()


def show():
    errors = []
    for (x, w), _ in calls():
        w.requires_grad_()
        (mine,) = torch.autograd.grad(function(x, w).sum(), w)
        (true,) = torch.autograd.grad(primal(x, w).sum(), w)
        errors.append((mine - true).abs().max().item())
    return errors[0] < 1e-12 and errors[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "The gradient of weight uses the first sample only and is wrong for any batch larger than one.",
    "rank": "wrong",
    "names": ["gradient of weight", "weight", "batch"],
    "first_law": "the gradient of weight",
}
