import torch


class QuadraticEnergy(torch.autograd.Function):
    """E = 1/2 x^T K x for a batch of states and one stiffness matrix."""

    @staticmethod
    def forward(ctx, x, stiffness):
        kx = x @ stiffness.t()
        ctx.save_for_backward(x, stiffness)
        return 0.5 * (x * kx).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        x, stiffness = ctx.saved_tensors
        gx = gk = None
        if ctx.needs_input_grad[0]:
            gx = grad.unsqueeze(-1) * (x @ stiffness.t())
        if ctx.needs_input_grad[1]:
            gk = 0.5 * torch.einsum("n,ni,nj->ij", grad, x, x)
        return gx, gk


def quadratic_energy(x, stiffness):
    return QuadraticEnergy.apply(x, stiffness)


def primal(x, stiffness):
    return 0.5 * torch.einsum("ni,ij,nj->n", x, stiffness, x)


surrogate = primal
FUNCTION = quadratic_energy
WRT = ("x", "stiffness")


def _args(seed, n, d, symmetric=False):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=gen, dtype=torch.float64)
    k = torch.randn(d, d, generator=gen, dtype=torch.float64)
    return x, (k + k.t() if symmetric else k)


CALLS = [lambda: _args(0, 4, 3, symmetric=True), lambda: _args(1, 3, 4), lambda: _args(2, 1, 2)]
LIMITS = ("vmap", "jvp")
DEFECT = "the gradient of x takes the matrix to be symmetric: the half with its transpose is missing"
KEYWORDS = ("x", "symmetric", "transpose", "gradient")
