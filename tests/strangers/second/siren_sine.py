import torch


class SirenSine(torch.autograd.Function):
    """sin(w0 x), the activation of SIREN. Fields trained on their Laplacian differentiate it twice."""

    @staticmethod
    def forward(ctx, x, w0):
        ctx.save_for_backward(torch.cos(w0 * x))
        ctx.w0 = w0
        return torch.sin(w0 * x)

    @staticmethod
    def backward(ctx, grad_output):
        (cos,) = ctx.saved_tensors
        return grad_output * ctx.w0 * cos, None


def siren_sine(x, w0=30.0):
    return SirenSine.apply(x, w0)


function = siren_sine
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(146)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"w0": 1.0})]


def primal(x, w0=30.0):
    return (w0 * x).sin()


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    second = []
    for f in (function, primal):
        (first,) = torch.autograd.grad((x * f(x)).sum(), x, create_graph=True)
        second.append((first.detach(), torch.autograd.grad(first.sum(), x)[0]))
    (a, b), (c, d) = second
    return torch.allclose(a, c) and not torch.allclose(b, d)


TRUTH = {
    "sound": False,
    "defect": "The cosine is worked out in forward and saved without its history: second derivatives silently lose "
    "the term with the sine.",
    "rank": "wrong",
    "names": ["second derivative", "double backward", "second order", "create_graph", "second"],
    "first_law": "the second derivative",
}
