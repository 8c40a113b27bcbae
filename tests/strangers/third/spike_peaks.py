import torch


class SpikePeaks(torch.autograd.Function):
    """Largest sample of each window of a recording and where it lies. The end that fills no window is left out."""

    @staticmethod
    def forward(ctx, trace, window):
        n = trace.shape[-1] // window
        value, at = trace[..., : n * window].unflatten(-1, (n, window)).max(-1)
        at = at + window * torch.arange(n, device=trace.device)
        ctx.mark_non_differentiable(at)
        ctx.save_for_backward(at)
        ctx.length = trace.shape[-1]
        return value, at

    @staticmethod
    def backward(ctx, grad, _):
        (at,) = ctx.saved_tensors
        empty = grad.new_zeros(*grad.shape[:-1], ctx.length)
        return empty.scatter(-1, at, grad), None


def spike_peaks(trace, window=3):
    return SpikePeaks.apply(trace, window)


function = spike_peaks
wrt = ("trace",)


def calls():
    g = torch.Generator().manual_seed(370)
    x = torch.randn(2, 10, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"window": 5})]


def primal(trace, window=3):
    parts = [trace[..., i : i + window] for i in range(0, trace.shape[-1] - window + 1, window)]
    at = [p.argmax(-1) + i * window for i, p in enumerate(parts)]
    return torch.stack([p.max(-1).values for p in parts], -1), torch.stack(at, -1)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
