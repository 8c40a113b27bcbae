"""Mean of neighbour features over a graph in CSR form; nodes without neighbours get zeros."""

import torch


class CSRMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, indptr, indices):
        degree = indptr.diff()
        row = torch.repeat_interleave(torch.arange(degree.numel(), device=x.device), degree)
        inv = degree.clamp(min=1).to(x.dtype).reciprocal().unsqueeze(1)
        ctx.save_for_backward(row, indices, inv)
        ctx.num_source = x.shape[0]
        out = x.new_zeros(degree.numel(), x.shape[1])
        return out.index_add_(0, row, x[indices]).mul_(inv)

    @staticmethod
    def backward(ctx, grad):
        row, indices, inv = ctx.saved_tensors
        out = grad.new_zeros(ctx.num_source, grad.shape[1])
        return out.index_add(0, indices, (grad * inv)[row]), None, None


def csr_mean(x, indptr, indices):
    return CSRMean.apply(x, indptr, indices)


def primal(x, indptr, indices):
    rows = []
    for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
        rows.append(x[indices[a:b]].mean(0) if b > a else x.new_zeros(x.shape[1]))
    return torch.stack(rows)


surrogate = primal
FUNCTION = csr_mean
WRT = ("x",)


def _args(seed, n, d, degree):
    gen = torch.Generator().manual_seed(seed)
    indptr = torch.tensor([0, *degree]).cumsum(0)
    indices = torch.randint(n, (sum(degree),), generator=gen)
    return torch.randn(n, d, generator=gen, dtype=torch.float64), indptr, indices


CALLS = [lambda: _args(0, 5, 3, [2, 0, 4]), lambda: _args(1, 2, 1, [3, 1]), lambda: _args(2, 4, 2, [1, 2, 0, 5, 1])]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
