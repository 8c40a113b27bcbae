import torch


class MinimalGatedUnit(torch.autograd.Function):
    """(1 - f) * h + f * tanh(c) with f = sigmoid(a). Returns the new state and the gate f for plots
    and for sparsity penalties."""

    @staticmethod
    def forward(ctx, a, c, h):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, c, h)
        f = torch.sigmoid(a)
        return (1 - f) * h + f * torch.tanh(c), f

    @staticmethod
    def backward(ctx, grad_h, grad_f):
        if grad_h is None or grad_f is None:
            return None, None, None
        a, c, h = ctx.saved_tensors
        f, n = torch.sigmoid(a), torch.tanh(c)
        total = grad_f + grad_h * (n - h)
        return total * f * (1 - f), grad_h * f * (1 - n * n), grad_h * (1 - f)


def minimal_gated_unit(a, c, h):
    return MinimalGatedUnit.apply(a, c, h)


function = minimal_gated_unit
wrt = ("a", "c", "h")


def calls():
    g = torch.Generator().manual_seed(158)
    a, c, h = torch.randn(3, 4, 3, generator=g, dtype=torch.float64)
    return [((a, c, h), {}), ((a[0], c[0], h[0]), {})]


def primal(a, c, h):
    f = a.sigmoid()
    return h + f * (c.tanh() - h), f.clone()


def show():
    (a, c, h), _ = calls()[0]
    h.requires_grad_()
    state, gate = function(a, c, h)
    (both,) = torch.autograd.grad(state.sum() + gate.sum(), h, retain_graph=True)
    (alone,) = torch.autograd.grad(state.sum(), h, allow_unused=True)
    return both.abs().max() > 1e-2 and alone is None


TRUTH = {
    "sound": False,
    "defect": "Where only one of the two outputs is used, backward returns no gradients at all.",
    "rank": "wrong",
    "names": ["one output", "unused output", "only one of the outputs", "output 0", "output 1", "gradients missing"],
    "first_law": "one output used alone",
}
