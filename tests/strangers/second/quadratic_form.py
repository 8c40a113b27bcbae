import torch


class QuadraticForm(torch.autograd.Function):
    """x_b^T A x_b for every row of x (B, D), A (D, D) -> (B,)."""

    @staticmethod
    def forward(ctx, x, A):
        ctx.save_for_backward(x, A)
        return torch.bmm(x.unsqueeze(1), (x @ A.t()).unsqueeze(2)).squeeze()

    @staticmethod
    def backward(ctx, grad):
        x, A = ctx.saved_tensors
        gx = grad.reshape(-1, 1) * x
        grad_x = grad_A = None
        if ctx.needs_input_grad[0]:
            grad_x = gx @ (A + A.t())
        if ctx.needs_input_grad[1]:
            grad_A = gx.t() @ x
        return grad_x, grad_A


def quadratic_form(x, A):
    return QuadraticForm.apply(x, A)


function = quadratic_form
wrt = ("x", "A")


def calls():
    g = torch.Generator().manual_seed(141)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    A = torch.randn(3, 3, generator=g, dtype=torch.float64)
    return [((x, A), {}), ((x[:1], A), {})]


def primal(x, A):
    return torch.einsum("bi,ij,bj->b", x, A, x)


def show():
    shapes = [tuple(function(*args).shape) for args, _ in calls()]
    return shapes == [(4,), ()]


TRUTH = {
    "sound": False,
    "defect": "For a batch of one the bare squeeze also drops the batch dimension: the result has shape () and not "
    "(1,).",
    "rank": "wrong",
    "names": ["shape", "squeeze", "batch dimension", "batch of one", "batch size 1"],
    "first_law": "the shape of the output",
}
