import torch


class MeanVar(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        mean = x.mean(1)
        return mean, ((x - mean[:, None]) ** 2).mean(1)

    @staticmethod
    def backward(ctx, grad_mean, grad_var):
        if grad_mean is None:
            return None
        (x,) = ctx.saved_tensors
        n = x.shape[1]
        gx = (grad_mean / n).unsqueeze(1).expand_as(x)
        if grad_var is not None:
            gx = gx + 2 / n * grad_var[:, None] * (x - x.mean(1, keepdim=True))
        return gx


def mean_and_var(x):
    return MeanVar.apply(x)


function = mean_and_var
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(51)
    return [
        ((torch.randn(4, 3, generator=g, dtype=torch.float64),), {}),
        ((torch.randn(2, 6, generator=g, dtype=torch.float64),), {}),
    ]


def primal(x):
    return x.mean(1), x.var(1, unbiased=False)


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    both = [torch.autograd.grad(sum(o.sum() for o in f(x)), x)[0] for f in (function, primal)]
    (alone,) = torch.autograd.grad(function(x)[1].sum(), x, allow_unused=True)
    (true,) = torch.autograd.grad(primal(x)[1].sum(), x)
    return torch.allclose(*both) and alone is None and true.abs().max() > 0.1


TRUTH = {
    "sound": False,
    "defect": "When only the variance is used, the gradient of the mean is None and backward returns None: the gradient of the variance is lost.",
    "rank": "wrong",
    "names": ["output 1", "second output", "only", "None", "unused", "each output", "materialize"],
    "first_law": "the gradient of x through the second output alone",
}
