import torch


class StiffnessSolve(torch.autograd.Function):
    """Displacements u of K u = f, by the adjoint method."""

    @staticmethod
    def forward(ctx, k, f):
        lu, piv = torch.linalg.lu_factor(k)
        u = torch.linalg.lu_solve(lu, piv, f.unsqueeze(-1)).squeeze(-1)
        ctx.save_for_backward(lu, piv, u)
        return u

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        lu, piv, u = ctx.saved_tensors
        lam = torch.linalg.lu_solve(lu, piv, grad.unsqueeze(-1)).squeeze(-1)
        return -lam.unsqueeze(-1) * u.unsqueeze(-2), lam


def stiffness_solve(k, f):
    return StiffnessSolve.apply(k, f)


function = stiffness_solve
wrt = ("k", "f")


def calls():
    g = torch.Generator().manual_seed(336)
    a = torch.randn(4, 4, generator=g, dtype=torch.float64)
    f = torch.randn(4, generator=g, dtype=torch.float64)
    eye = 4 * torch.eye(4, dtype=a.dtype)
    follower = torch.stack([a + eye, 0.5 * a - eye])
    return [((a + a.T + 2 * eye, f), {}), ((follower, torch.stack([f, -f])), {})]


def primal(k, f):
    return (torch.linalg.inv(k) @ f.unsqueeze(-1)).squeeze(-1)


def show():
    off = []
    for (k, f), _ in calls():
        f.requires_grad_()
        (mine,) = torch.autograd.grad(function(k, f).sum(), f)
        (true,) = torch.autograd.grad(primal(k, f).sum(), f)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-12 and off[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "The adjoint system is solved with K where it needs K transposed; the same only for symmetric matrices.",
    "rank": "wrong",
    "names": ["transpose", "adjoint", "symmetric", "gradient of k", "gradient of f"],
    "first_law": "the gradient of f",
}
