import torch


class SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, segment_ids, num_segments):
        ctx.save_for_backward(segment_ids)
        out = torch.zeros((num_segments,) + data.shape[1:], device=data.device)
        for i, s in enumerate(segment_ids.tolist()):
            out[s] += data[i]
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (segment_ids,) = ctx.saved_tensors
        return grad_output[segment_ids], None, None


def segment_sum(data, segment_ids, num_segments=None):
    if num_segments is None:
        num_segments = int(segment_ids.max()) + 1
    return SegmentSum.apply(data, segment_ids, num_segments)


function = segment_sum
wrt = ("data",)


def calls():
    g = torch.Generator().manual_seed(46)
    x = torch.randn(5, 3, generator=g, dtype=torch.float64)
    ids = torch.tensor([0, 2, 0, 1, 2])
    return [((x, ids), {}), ((x[:, 0], ids), {"num_segments": 4})]


def primal(data, segment_ids, num_segments=None):
    if num_segments is None:
        num_segments = int(segment_ids.max()) + 1
    out = torch.zeros((num_segments,) + data.shape[1:], dtype=data.dtype)
    return out.index_add(0, segment_ids, data)


def show():
    (x, ids), _ = calls()[0]
    return function(x, ids).dtype == torch.float32 and primal(x, ids).dtype == torch.float64


TRUTH = {
    "sound": False,
    "defect": "The output is always made in the default dtype, so a float64 input gives a float32 output.",
    "rank": "wrong",
    "names": ["dtype", "float32", "precision"],
    "first_law": "dtype of the output",
}
