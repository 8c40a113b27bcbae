import torch


class ThresholdedReLU(torch.autograd.Function):
    mask = None

    @staticmethod
    def forward(ctx, x, theta):
        ThresholdedReLU.mask = (x > theta).to(x.dtype)
        return x * ThresholdedReLU.mask

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ThresholdedReLU.mask, None


def thresholded_relu(x, theta=1.0):
    return ThresholdedReLU.apply(x, theta)


function = thresholded_relu
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(34)
    x = 2 * torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x.flatten(), 0.2), {})]


def primal(x, theta=1.0):
    return torch.where(x > theta, x, torch.zeros_like(x))


def show():
    a = torch.tensor([2.0, -2.0], requires_grad=True)
    b = torch.tensor([-2.0, 2.0], requires_grad=True)
    ya, yb = function(a), function(b)
    (ga,) = torch.autograd.grad(ya.sum(), a)
    (gb,) = torch.autograd.grad(yb.sum(), b)
    return ga.tolist() == [0.0, 1.0] and gb.tolist() == [0.0, 1.0]


TRUTH = {
    "sound": False,
    "defect": "The mask is kept on the class, so of two calls made before backward the first uses the mask of the second.",
    "rank": "wrong",
    "names": ["two calls", "state", "class", "other call", "second call", "between calls", "shared"],
    "first_law": "two calls before backward",
}
