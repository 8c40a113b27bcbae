import torch
from torch.autograd import Function


class VectorQuantization(Function):
    """VQ-VAE: nearest codebook row forward, straight through to z backward."""

    @staticmethod
    def forward(ctx, z, codebook):
        dist = (
            (z**2).sum(1, keepdim=True)
            - 2 * z @ codebook.t()
            + (codebook**2).sum(1)
        )
        idx = dist.argmin(dim=1)
        ctx.save_for_backward(idx)
        ctx.mark_non_differentiable(idx)
        ctx.codes = codebook.shape[0]
        return codebook.index_select(0, idx), idx

    @staticmethod
    def backward(ctx, grad_out, _):
        grad_z = grad_codebook = None
        if ctx.needs_input_grad[0]:
            grad_z = grad_out.clone()
        if ctx.needs_input_grad[1]:
            (idx,) = ctx.saved_tensors
            grad_codebook = grad_out.new_zeros(ctx.codes, grad_out.shape[1])
            grad_codebook = grad_codebook.index_add(0, idx, grad_out)
        return grad_z, grad_codebook


vq_st = VectorQuantization.apply
function = vq_st
wrt = ("z", "codebook")


def calls():
    g = torch.Generator().manual_seed(8)
    z = torch.randn(6, 3, generator=g, dtype=torch.float64)
    book = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((z, book), {}), ((z[:1], book), {})]


def primal(z, codebook):
    idx = ((z[:, None] - codebook[None]) ** 2).sum(-1).argmin(1)
    return codebook[idx], idx


def surrogate(z, codebook):
    idx = ((z[:, None] - codebook[None]) ** 2).sum(-1).argmin(1)
    return codebook[idx] + z - z.detach(), idx


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
