import torch


class Beamform(torch.autograd.Function):
    """Narrow-band beamformer w^H x: weights (M,), snapshots (M, T), both complex -> (T,)."""

    @staticmethod
    def forward(ctx, w, x):
        ctx.save_for_backward(w, x)
        return w.conj() @ x

    @staticmethod
    def backward(ctx, grad):
        w, x = ctx.saved_tensors
        grad_w = grad_x = None
        if ctx.needs_input_grad[0]:
            grad_w = x @ grad.conj()
        if ctx.needs_input_grad[1]:
            grad_x = torch.outer(w.conj(), grad)
        return grad_w, grad_x


def beamform(w, x):
    return Beamform.apply(w, x)


function = beamform
wrt = ("w", "x")


def calls():
    g = torch.Generator().manual_seed(154)
    w = torch.randn(4, generator=g, dtype=torch.complex128)
    x = torch.randn(4, 6, generator=g, dtype=torch.complex128)
    return [((w, x), {}), ((w.real.to(w.dtype), x[:, :1]), {})]


def primal(w, x):
    return (w.conj().unsqueeze(1) * x).sum(0)


def show():
    off = []
    for (w, x), _ in calls():
        x.requires_grad_()
        (mine,) = torch.autograd.grad(function(w, x).abs().sum(), x)
        (true,) = torch.autograd.grad(primal(w, x).abs().sum(), x)
        off.append((mine - true).abs().max().item())
    return off[0] > 1e-2 and off[1] < 1e-12


TRUTH = {
    "sound": False,
    "defect": "A conjugate too many: the gradient of x must use w, not its conjugate.",
    "rank": "wrong",
    "names": ["conjugate", "conj", "gradient of x", "complex", "imaginary"],
    "first_law": "the gradient of x",
}
