"""Rotate points by an axis-angle vector (Rodrigues), with the right Jacobian of SO(3) in backward."""

import torch
from torch.autograd.function import once_differentiable


def _hat(w):
    zero = torch.zeros_like(w[0])
    return torch.stack([zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero]).view(3, 3)


def _coefficients(angle):
    """sin(a)/a, (1 - cos(a))/a^2 and (a - sin(a))/a^3, by their series near zero."""
    a2 = angle * angle
    small = angle < 1e-2
    a = torch.where(small, torch.ones_like(angle), angle)
    one = torch.where(small, 1 - a2 / 6 + a2 * a2 / 120, torch.sin(a) / a)
    two = torch.where(small, 0.5 - a2 / 24 + a2 * a2 / 720, (1 - torch.cos(a)) / a**2)
    three = torch.where(small, 1 / 6 - a2 / 120 + a2 * a2 / 5040, (a - torch.sin(a)) / a**3)
    return one, two, three


class RotatePoints(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, omega):
        one, two, three = _coefficients(omega.norm())
        k = _hat(omega)
        eye = torch.eye(3, dtype=omega.dtype, device=omega.device)
        k2 = k @ k
        rot = eye + one * k + two * k2
        jac = eye - two * k + three * k2
        ctx.save_for_backward(points, rot, jac)
        return points @ rot.t()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        points, rot, jac = ctx.saved_tensors
        body = grad @ rot
        g_points = body if ctx.needs_input_grad[0] else None
        g_omega = None
        if ctx.needs_input_grad[1]:
            g_omega = torch.linalg.cross(points, body).sum(0) @ jac
        return g_points, g_omega


def rotate_points(points, omega):
    return RotatePoints.apply(points, omega)


def primal(points, omega):
    return points @ torch.linalg.matrix_exp(_hat(omega)).t()


surrogate = primal
FUNCTION = rotate_points
WRT = ("points", "omega")


def _args(seed, n, scale):
    gen = torch.Generator().manual_seed(seed)
    points = torch.randn(n, 3, generator=gen, dtype=torch.float64)
    return points, scale * torch.randn(3, generator=gen, dtype=torch.float64)


CALLS = [lambda: _args(0, 4, 0.7), lambda: _args(1, 1, 1.2), lambda: _args(2, 6, 0.3), lambda: _args(3, 2, 0.0)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = None
KEYWORDS = ()
