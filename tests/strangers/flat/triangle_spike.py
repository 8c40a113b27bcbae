import torch


class TriangleSpike(torch.autograd.Function):
    """Spike for v >= 1, triangular pseudo-derivative (Bellec et al. 2018)"""

    gamma = 0.3

    @staticmethod
    def forward(ctx, v):
        spike = (v >= 1).to(v.dtype)
        ctx.save_for_backward(v, spike)
        return spike

    @staticmethod
    def backward(ctx, grad_spike):
        v, spike = ctx.saved_tensors
        pseudo = TriangleSpike.gamma * (1 - (v - 1).abs()).clamp(min=0)
        return grad_spike * pseudo * spike


spike_fn = TriangleSpike.apply
function = spike_fn
wrt = ("v",)


def calls():
    g = torch.Generator().manual_seed(113)
    v = 2 * torch.randn(4, 6, generator=g, dtype=torch.float64)
    return [((v,), {}), ((v[:2] + 1,), {})]


def primal(v):
    return (v >= 1).to(v.dtype)


def surrogate(v):
    u = (v - 1).clamp(-1, 1)
    return TriangleSpike.gamma * (u - u * u.abs() / 2)


def show():
    v = torch.tensor([0.5, 1.5], requires_grad=True)
    function(v).sum().backward()
    return v.grad[0].item() == 0 and v.grad[1].item() > 0.1


TRUTH = {
    "sound": False,
    "defect": "The pseudo-derivative is multiplied by the spike, so below the threshold it is zero where it is meant to be the rising side of the triangle.",
    "rank": "wrong",
    "names": ["gradient of v", "surrogate", "zero", "below", "threshold"],
    "first_law": "the gradient of v",
    "flat_everywhere": False,
}
