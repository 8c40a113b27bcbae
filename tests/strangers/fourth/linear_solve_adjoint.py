import torch


class Solve(torch.autograd.Function):
    @staticmethod
    def forward(mat, rhs):
        return torch.linalg.solve(mat, rhs.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        mat, _ = inputs
        ctx.save_for_backward(mat, output)

    @staticmethod
    def backward(ctx, grad):
        mat, sol = ctx.saved_tensors
        adj = torch.linalg.solve(mat.mT, grad.unsqueeze(-1)).squeeze(-1)
        gmat = None
        if ctx.needs_input_grad[0]:
            gmat = -torch.einsum("...i,...j->...ij", adj, sol)
        return gmat, adj


def solve(mat, rhs):
    """Solution of ``mat @ x = rhs`` (batched, no broadcasting)."""
    return Solve.apply(mat, rhs)


def primal(mat, rhs):
    return (torch.linalg.inv(mat) @ rhs.unsqueeze(-1)).squeeze(-1)


surrogate = primal
FUNCTION = solve
WRT = ("mat", "rhs")


def _system(seed, n, *batch):
    gen = torch.Generator().manual_seed(seed)
    mat = torch.randn(*batch, n, n, generator=gen, dtype=torch.float64) + 2 * n * torch.eye(n, dtype=torch.float64)
    return mat, torch.randn(*batch, n, generator=gen, dtype=torch.float64)


CALLS = [lambda: _system(0, 3, 2), lambda: _system(1, 4), lambda: _system(2, 1, 1)]
LIMITS = ("vmap", "jvp", "half")
DEFECT = ""
KEYWORDS = ()
