import torch


class PReLUFunction(torch.autograd.Function):
    """alpha is one slope per channel (dim 1), or a single slope"""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return torch.where(x > 0, x, PReLUFunction.expand(alpha, x) * x)

    @staticmethod
    def expand(alpha, x):
        return alpha if alpha.dim() == 0 else alpha.view(1, -1, *[1] * (x.dim() - 2))

    @staticmethod
    def backward(ctx, grad_output):
        x, alpha = ctx.saved_tensors
        grad_x = grad_alpha = None
        if ctx.needs_input_grad[0]:
            slope = PReLUFunction.expand(alpha, x)
            grad_x = torch.where(x > 0, grad_output, slope * grad_output)
        if ctx.needs_input_grad[1] and alpha.dim() == 1:
            dims = [d for d in range(x.dim()) if d != 1]
            grad_alpha = (grad_output * x.clamp(max=0)).sum(dims)
        return grad_x, grad_alpha


def prelu(x, alpha):
    return PReLUFunction.apply(x, alpha)


function = prelu
wrt = ("x", "alpha")


def calls():
    g = torch.Generator().manual_seed(52)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    y = torch.randn(2, 3, 5, generator=g, dtype=torch.float64)
    per_channel = torch.tensor([0.1, 0.2, 0.4], dtype=torch.float64)
    return [((x, per_channel), {}), ((y, per_channel), {}), ((x, per_channel[1]), {})]


def primal(x, alpha):
    a = alpha if alpha.dim() == 0 else alpha.view(1, -1, *[1] * (x.dim() - 2))
    return x.clamp(min=0) - a * (-x).clamp(min=0)


def show():
    (x, a), _ = calls()[2]
    a = a.clone().requires_grad_()
    (mine,) = torch.autograd.grad(prelu(x.requires_grad_(), a).sum(), a, allow_unused=True)
    (true,) = torch.autograd.grad(primal(x, a).sum(), a)
    return mine is None and true.abs() > 0.1


TRUTH = {
    "sound": False,
    "defect": "A single (0-d) alpha broadcast over x gets no gradient; only a vector of slopes does.",
    "rank": "wrong",
    "names": ["alpha", "None", "missing", "no gradient", "scalar"],
    "first_law": "the gradient of alpha",
}
