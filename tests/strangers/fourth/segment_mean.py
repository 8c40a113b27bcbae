import torch


class SegmentMean(torch.autograd.Function):
    """Mean of the rows of ``x`` that share a segment id; a segment without rows gives zeros."""

    @staticmethod
    def forward(x, index, num_segments):
        count = torch.bincount(index, minlength=num_segments).clamp(min=1).to(x.dtype)
        total = x.new_zeros((num_segments, x.shape[1])).index_add(0, index, x)
        return total / count.unsqueeze(1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, index, num_segments = inputs
        ctx.save_for_backward(index)
        ctx.num_segments = num_segments

    @staticmethod
    def backward(ctx, grad_out):
        (index,) = ctx.saved_tensors
        count = torch.bincount(index, minlength=ctx.num_segments).clamp(min=1).to(grad_out.dtype)
        return (grad_out / count.unsqueeze(1)).index_select(0, index), None, None


def segment_mean(x, index, num_segments):
    return SegmentMean.apply(x, index, num_segments)


def primal(x, index, num_segments):
    onehot = (index.unsqueeze(0) == torch.arange(num_segments, device=index.device).unsqueeze(1)).to(x.dtype)
    return onehot @ x / onehot.sum(1, keepdim=True).clamp(min=1)


surrogate = primal
FUNCTION = segment_mean
WRT = ("x",)


def _rows(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_rows(0, 6, 3), torch.tensor([0, 2, 2, 1, 0, 2]), 3),
    lambda: (_rows(1, 4, 2), torch.tensor([4, 1, 4, 4]), 6),
    lambda: (_rows(2, 1, 1), torch.tensor([0]), 1),
]
LIMITS = ("vmap", "jvp", "compile", "half")
DEFECT = ""
KEYWORDS = ()
