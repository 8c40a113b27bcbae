import torch


class MatInv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A):
        B = torch.linalg.inv(A)
        ctx.save_for_backward(B)
        return B

    @staticmethod
    def backward(ctx, grad_B):
        (B,) = ctx.saved_tensors
        Bt = B.transpose(-1, -2)
        return Bt @ grad_B @ Bt


function = MatInv.apply
wrt = ("A",)


def calls():
    g = torch.Generator().manual_seed(21)
    a = torch.randn(3, 3, generator=g, dtype=torch.float64) + 3 * torch.eye(3, dtype=torch.float64)
    b = torch.randn(2, 4, 4, generator=g, dtype=torch.float64) + 4 * torch.eye(4, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def primal(A):
    return torch.linalg.inv(A)


def show():
    (args, _) = calls()[0]
    A = args[0].requires_grad_()
    v = torch.randn(3, 3, dtype=torch.float64)
    (mine,) = torch.autograd.grad(function(A), A, v)
    (true,) = torch.autograd.grad(primal(A), A, v)
    return torch.allclose(mine, -true) and not torch.allclose(mine, true)


TRUTH = {
    "sound": False,
    "defect": "The gradient of the inverse lacks its minus sign.",
    "rank": "wrong",
    "names": ["sign", "factor -1", "-1", "opposite", "negative"],
    "first_law": "the gradient of A",
}
