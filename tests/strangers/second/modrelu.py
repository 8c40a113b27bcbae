import torch


class ModReLU(torch.autograd.Function):
    """relu(|z| + b) z / |z| for complex activations, one real bias per channel (last dim)."""

    @staticmethod
    def forward(ctx, z, b):
        ctx.save_for_backward(z, b)
        return torch.relu(z.abs() + b) * torch.sgn(z)

    @staticmethod
    def backward(ctx, grad):
        z, b = ctx.saved_tensors
        r, u = z.abs(), torch.sgn(z)
        on = r + b > 0
        radial = (u.conj() * grad).real
        grad_z = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_z = on * (grad + b / r.clamp(min=1e-12) * (grad - u * radial))
        if ctx.needs_input_grad[1]:
            grad_b = (on * radial).sum_to_size(b.shape)
        return grad_z, grad_b


def modrelu(z, b):
    return ModReLU.apply(z, b)


function = modrelu
wrt = ("z", "b")


def calls():
    g = torch.Generator().manual_seed(112)
    z = torch.randn(3, 5, 4, generator=g, dtype=torch.complex128)
    b = 0.5 * torch.randn(4, generator=g, dtype=torch.float64)
    return [((z, b), {}), ((z[0, 0], b - 0.5), {})]


def primal(z, b):
    m = z.real.square().add(z.imag.square()).sqrt()
    return (m + b).clamp(min=0) / m * z


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
