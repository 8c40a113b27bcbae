import math

import torch


def transfer(shape, wavelength, dz, dtype):
    real = torch.float64 if dtype == torch.complex128 else torch.float32
    fy = torch.fft.fftfreq(shape[-2], dtype=real)[:, None]
    fx = torch.fft.fftfreq(shape[-1], dtype=real)[None, :]
    phase = -math.pi * wavelength * dz * (fx**2 + fy**2)
    return torch.polar(torch.ones_like(phase), phase)


class FresnelPropagate(torch.autograd.Function):
    @staticmethod
    def forward(field, h):
        return torch.fft.ifft2(torch.fft.fft2(field) * h)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx, grad):
        (h,) = ctx.saved_tensors
        return torch.fft.ifft2(torch.fft.fft2(grad) * h), None


def fresnel_propagate(field, wavelength=0.5, dz=10.0):
    """Free-space propagation of a complex field over dz, paraxial, periodic borders."""
    return FresnelPropagate.apply(field, transfer(field.shape, wavelength, dz, field.dtype))


function = fresnel_propagate
wrt = ("field",)


def calls():
    g = torch.Generator().manual_seed(322)
    u = torch.randn(4, 5, generator=g, dtype=torch.complex128)
    return [((u,), {}), ((u[None],), {"dz": -25.0})]


def primal(field, wavelength=0.5, dz=10.0):
    def one_axis(n):
        f = torch.fft.fftfreq(n, dtype=field.real.dtype)
        dft = torch.fft.fft(torch.eye(n, dtype=field.dtype))
        return dft.conj() @ torch.diag(torch.exp(-1j * math.pi * wavelength * dz * f**2)) @ dft / n

    return one_axis(field.shape[-2]) @ field @ one_axis(field.shape[-1]).T


def show():
    (u,), _ = calls()[0]
    u.requires_grad_()
    target = torch.ones_like(u)
    (mine,) = torch.autograd.grad((function(u) - target).abs().square().sum(), u)
    (true,) = torch.autograd.grad((primal(u) - target).abs().square().sum(), u)
    return torch.allclose(function(u), primal(u)) and (mine - true).abs().max().item() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward multiplies by the transfer function where its conjugate belongs: the gradient is propagated "
    "forwards once more instead of back.",
    "rank": "wrong",
    "names": ["conj", "conjugate", "complex", "gradient of field", "adjoint", "transpose"],
    "first_law": "the gradient of field",
}
