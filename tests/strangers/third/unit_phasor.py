import torch


class UnitPhasor(torch.autograd.Function):
    """z / |z|, and 0 at 0: keeps the phase of a field. Real input is refused."""

    @staticmethod
    def forward(ctx, z):
        if not z.is_complex():
            raise TypeError("UnitPhasor wants a complex tensor")
        ctx.save_for_backward(z)
        return z / torch.where(z == 0, 1.0, z.abs())

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        r = torch.where(z == 0, 1.0, z.abs())
        u = z / r
        return torch.where(z == 0, 0.0, (grad - u * (u.conj() * grad).real) / r)


def unit_phasor(z):
    return UnitPhasor.apply(z)


function = unit_phasor
wrt = ("z",)


def calls():
    g = torch.Generator().manual_seed(359)
    z = torch.randn(3, 4, generator=g, dtype=torch.complex128)
    return [((z,), {}), ((0.01 * z[0],), {})]


def primal(z):
    return torch.sgn(z)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
