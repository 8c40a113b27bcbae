import torch


class OverlapAdd(torch.autograd.Function):
    """Put windowed frames (B, n, W) back together into a signal (B, (n - 1) * hop + W)."""

    @staticmethod
    def forward(ctx, frames, hop):
        b, n, w = frames.shape
        ctx.hop, ctx.shape = hop, frames.shape
        signal = frames.new_zeros(b, (n - 1) * hop + w)
        for i in range(n):
            signal[:, i * hop : i * hop + w] += frames[:, i]
        return signal

    @staticmethod
    def backward(ctx, grad_signal):
        w, hop = ctx.shape[-1], ctx.hop
        grad_frames = grad_signal.new_zeros(ctx.shape)
        for i in range((grad_signal.shape[1] - w) // hop):
            grad_frames[:, i] = grad_signal[:, i * hop : i * hop + w]
        return grad_frames, None


def overlap_add(frames, hop=2):
    return OverlapAdd.apply(frames, hop)


function = overlap_add
wrt = ("frames",)


def calls():
    g = torch.Generator().manual_seed(123)
    a = torch.randn(2, 5, 4, generator=g, dtype=torch.float64)
    b = torch.randn(1, 3, 6, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b, 3), {})]


def primal(frames, hop=2):
    n, w = frames.shape[1:]
    total = (n - 1) * hop + w
    return sum(torch.nn.functional.pad(frames[:, i], (i * hop, total - w - i * hop)) for i in range(n))


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    (grad,) = torch.autograd.grad(function(x).sum(), x)
    return bool((grad[:, -1] == 0).all() and (grad[:, :-1] == 1).all())


TRUTH = {
    "sound": False,
    "defect": "Off by one: the last frame gets no gradient.",
    "rank": "wrong",
    "names": ["last frame", "gradient of frames", "frames", "off by one"],
    "first_law": "the gradient of frames",
}
