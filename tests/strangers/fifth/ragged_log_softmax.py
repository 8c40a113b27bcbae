"""log-softmax inside each segment of a packed ragged batch."""

import torch


class RaggedLogSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, packed, lengths):
        out = torch.cat([torch.log_softmax(part, 0) for part in packed.split(lengths)])
        ctx.save_for_backward(out)
        ctx.lengths = lengths
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        totals = [g.sum(0, keepdim=True).expand_as(g) for g in grad.split(ctx.lengths)]
        return grad - out.exp() * torch.cat(totals), None


def ragged_log_softmax(packed, lengths):
    return RaggedLogSoftmax.apply(packed, list(lengths))


def primal(packed, lengths):
    parts = packed.split(list(lengths))
    return torch.cat([p - p.logsumexp(0, keepdim=True) for p in parts])


surrogate = primal
FUNCTION = ragged_log_softmax
WRT = ("packed",)


def _args(seed, lengths, *extra):
    gen = torch.Generator().manual_seed(seed)
    return torch.randn(sum(lengths), *extra, generator=gen, dtype=torch.float64), lengths


CALLS = [lambda: _args(0, (3, 1, 4)), lambda: _args(1, (5,)), lambda: _args(2, (2, 2), 3)]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
