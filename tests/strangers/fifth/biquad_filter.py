"""Direct-form biquad IIR filter run in numpy, adjoint by the time-reversed recursion."""

import numpy as np
import torch
from torch.autograd.function import once_differentiable


def _all_pole(u, a):
    y = np.zeros(len(u) + 2)
    for n in range(len(u)):
        y[n + 2] = u[n] - a[0] * y[n + 1] - a[1] * y[n]
    return y[2:]


def _delayed(v, k):
    return np.concatenate([np.zeros(k), v])[: len(v)]


class Biquad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b, a):
        xn, bn, an = (t.detach().cpu().double().numpy() for t in (x, b, a))
        u = sum(bn[k] * _delayed(xn, k) for k in range(3))
        y = _all_pole(u, an)
        ctx.save_for_backward(x, b, a)
        ctx.y = y
        return torch.from_numpy(y).to(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, b, a = ctx.saved_tensors
        xn, bn, an, g = (t.detach().cpu().double().numpy() for t in (x, b, a, grad))
        z = _all_pole(g[::-1], an)[::-1]
        gx = sum(bn[k] * _delayed(z[::-1], k)[::-1] for k in range(3))
        gb = np.array([z @ _delayed(xn, k) for k in range(3)])
        ga = np.array([-(z @ _delayed(ctx.y, k)) for k in (1, 2)])
        return tuple(torch.from_numpy(np.ascontiguousarray(v)).to(t) for v, t in ((gx, x), (gb, b), (ga, a)))


def biquad(x, b, a):
    return Biquad.apply(x, b, a)


def primal(x, b, a):
    zero = torch.zeros_like(x[0])
    xs, ys = [zero, zero, *x.unbind()], [zero, zero]
    for n in range(len(x)):
        u = b[0] * xs[n + 2] + b[1] * xs[n + 1] + b[2] * xs[n]
        ys.append(u - a[0] * ys[-1] - a[1] * ys[-2])
    return torch.stack(ys[2:])


surrogate = primal
FUNCTION = biquad
WRT = ("x", "b", "a")


def _args(seed, n):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, generator=gen, dtype=torch.float64)
    b = torch.randn(3, generator=gen, dtype=torch.float64)
    return x, b, 0.4 * torch.rand(2, generator=gen, dtype=torch.float64) - 0.3


CALLS = [lambda: _args(0, 9), lambda: _args(1, 3), lambda: _args(2, 16)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = None
KEYWORDS = ()
