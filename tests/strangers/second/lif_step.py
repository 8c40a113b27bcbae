import torch


class LIFStep(torch.autograd.Function):
    """One step of a leaky integrate-and-fire layer with soft reset.

    Returns the spikes and the potential after the reset. Boxcar surrogate of width one around the
    threshold; the reset carries no gradient. The kernel on the device is float32 only.
    """

    @staticmethod
    def forward(ctx, current, v, beta, threshold):
        if current.dtype != torch.float32 or v.dtype != torch.float32:
            raise TypeError("LIFStep supports float32 only")
        u = beta * v + current
        s = (u >= threshold).float()
        ctx.save_for_backward((u - threshold).abs() < 0.5)
        ctx.beta = beta
        return s, u - threshold * s

    @staticmethod
    def backward(ctx, grad_s, grad_u):
        (near,) = ctx.saved_tensors
        grad = grad_s * near + grad_u
        return grad, ctx.beta * grad, None, None


def lif_step(current, v, beta=0.75, threshold=1.0):
    return LIFStep.apply(current, v, beta, threshold)


function = lif_step
wrt = ("current", "v")


def calls():
    g = torch.Generator().manual_seed(102)
    i, v = torch.randn(2, 4, 7, generator=g)
    j, u = 2 * torch.randn(2, 2, 3, 3, generator=g)
    return [((i, v), {}), ((j, u), {"beta": 0.5})]


def primal(current, v, beta=0.75, threshold=1.0):
    u = beta * v + current
    s = (u >= threshold).float()
    return s, u - threshold * s


def surrogate(current, v, beta=0.75, threshold=1.0):
    u = beta * v + current
    s = (u >= threshold).float()
    return (u - threshold + 0.5).clamp(0, 1), u - threshold * s


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
