import torch


class HuberPsi(torch.autograd.Function):
    """Huber's influence function: the residual, clipped at delta"""

    @staticmethod
    def forward(ctx, r, delta):
        ctx.save_for_backward(r)
        ctx.delta = delta
        return r.clamp(-delta, delta)

    @staticmethod
    def backward(ctx, grad_output):
        r, = ctx.saved_tensors
        core = (r.abs() <= ctx.delta).to(r.dtype)
        return grad_output * core * r, None


def psi(r, delta=1.345):
    return HuberPsi.apply(r, delta)


function = psi
wrt = ("r",)


def calls():
    g = torch.Generator().manual_seed(117)
    r = 3 * torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((r,), {}), ((r[:2], 2.0), {})]


def primal(r, delta=1.345):
    return r.clamp(-delta, delta)


def show():
    r = torch.tensor([0.5, -1.0, 4.0], requires_grad=True)
    function(r).sum().backward()
    return r.grad.tolist() == [0.5, -1.0, 0.0]


TRUTH = {
    "sound": False,
    "defect": "For |r| <= delta the slope is 1, backward uses r (the derivative of the loss, not of psi).",
    "rank": "wrong",
    "names": ["gradient of r", "gradient", "factor"],
    "first_law": "the gradient of r",
    "flat_everywhere": False,
}
