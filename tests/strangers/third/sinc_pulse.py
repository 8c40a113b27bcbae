import torch


def _weight(x, k):
    """c_k of the k-th derivative of sin(x) / x: integral over s of s^k cos(s x + k pi / 2), s in [0, 1]."""
    small = x.abs() < 2.0
    xs = torch.where(small, x, 0.0)
    series, term = torch.zeros_like(x), torch.ones_like(x)
    # sum over n of the Taylor coefficients of sinc, differentiated k times
    factorial = 1.0
    for n in range(40):
        if n:
            factorial *= n
        if (n + k) % 2 == 0:
            sign = -1.0 if ((n + k) // 2) % 2 else 1.0
            series = series + sign * term / (factorial * (n + k + 1))
        term = term * xs
    xl = torch.where(small, 3.0, x)
    large = torch.sin(xl) / xl
    for j in range(1, k + 1):  # x f = sin x, differentiated j times: x f_j + j f_{j-1} = sin(x + j pi / 2)
        shifted = (torch.sin(xl), torch.cos(xl), -torch.sin(xl), -torch.cos(xl))[j % 4]
        large = (shifted - j * large) / xl
    return torch.where(small, series, large)


class SincDerivative(torch.autograd.Function):
    """The k-th derivative of sin(x) / x; its derivative is the next one, so that any order exists."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return _weight(x, k)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * SincDerivative.apply(x, ctx.k + 1), None


def sinc_pulse(t, bandwidth=1.0):
    return SincDerivative.apply(bandwidth * t, 0)


function = sinc_pulse
wrt = ("t",)


def calls():
    t = torch.tensor([0.0, 1e-9, -3e-5, 2e-3, -0.4, 1.9, 2.1, -7.0], dtype=torch.float64)
    return [((t,), {}), ((t.view(2, 4),), {"bandwidth": 5.0})]


def primal(t, bandwidth=1.0):
    """Gauss-Legendre quadrature of the integral of cos(s x) over [0, 1]."""
    n = 60
    k = torch.arange(1, n, dtype=torch.float64)
    off = k / (4 * k * k - 1).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(off, 1) + torch.diag(off, -1))
    s, w = (nodes + 1) / 2, vectors[0] ** 2
    return (w * torch.cos((bandwidth * t).unsqueeze(-1) * s)).sum(-1)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
