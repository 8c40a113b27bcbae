import torch
from torch import nn


class BoxcarSpike(torch.autograd.Function):
    """Heaviside spike with a rectangular surrogate of width 1 around the threshold (STBP)"""

    @staticmethod
    def forward(ctx, v, thresh):
        ctx.save_for_backward(v)
        return (v >= thresh).to(v.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        v, = ctx.saved_tensors
        window = v.abs() < 0.5
        return grad_output * window.to(grad_output.dtype), None


class LIF(nn.Module):
    def __init__(self, thresh=1.0):
        super().__init__()
        self.thresh = thresh

    def forward(self, v):
        return BoxcarSpike.apply(v, self.thresh)


module = LIF
wrt = ("v",)


def calls():
    g = torch.Generator().manual_seed(107)
    v = 2 + 7 * torch.rand(4, 3, generator=g, dtype=torch.float64)
    return [((v,), {}), ((-v,), {})]


def primal(module, v):
    return (v >= module.thresh).to(v.dtype)


def surrogate(module, v):
    return (v - module.thresh).clamp(-0.5, 0.5) + 0.5


def show():
    v = torch.tensor([0.0, 1.0], requires_grad=True)
    module()(v).sum().backward()
    return v.grad.tolist() == [1.0, 0.0]


TRUTH = {
    "sound": False,
    "defect": "The window lies around zero and not around the threshold.",
    "rank": "wrong",
    "names": ["gradient of v", "window", "threshold", "surrogate", "zero"],
    "first_law": "the gradient of v",
    "flat_everywhere": True,
}
