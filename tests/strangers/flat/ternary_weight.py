import torch


class Ternarize(torch.autograd.Function):
    """Weights to -1, 0, +1; the gradient is meant to pass for all |w| <= 1."""

    @staticmethod
    def forward(ctx, w, delta):
        t = torch.where(w > delta, 1.0, 0.0) - torch.where(w < -delta, 1.0, 0.0)
        t = t.to(w.dtype)
        ctx.save_for_backward(w, t)
        return t

    @staticmethod
    def backward(ctx, grad_output):
        w, t = ctx.saved_tensors
        return grad_output * t.abs() * (w.abs() <= 1).to(w.dtype), None


def ternarize(w, delta=0.5):
    return Ternarize.apply(w, delta)


function = ternarize
wrt = ("w",)


def calls():
    g = torch.Generator().manual_seed(115)
    w = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((w,), {}), ((2 * w[0], 0.7), {})]


def primal(w, delta=0.5):
    return (w > delta).to(w.dtype) - (w < -delta).to(w.dtype)


def surrogate(w, delta=0.5):
    return w.clamp(-1, 1)


def show():
    w = torch.tensor([0.2, 0.8, 2.0], requires_grad=True)
    function(w).sum().backward()
    return w.grad.tolist() == [0.0, 1.0, 0.0]


TRUTH = {
    "sound": False,
    "defect": "Weights that were rounded to zero get no gradient, where every weight of |w| <= 1 should.",
    "rank": "wrong",
    "names": ["gradient of w", "surrogate", "zero"],
    "first_law": "the gradient of w",
    "flat_everywhere": False,
}
