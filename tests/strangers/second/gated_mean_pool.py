import torch


class GatedMeanPool(torch.autograd.Function):
    """mean_t sigmoid(gate_t) * value_t: values (B, T, D), gate (B, T) -> (B, D)."""

    @staticmethod
    def forward(ctx, values, gate):
        ctx.save_for_backward(values, gate)
        return (torch.sigmoid(gate).unsqueeze(-1) * values).mean(1)

    @staticmethod
    def backward(ctx, grad):
        values, gate = ctx.saved_tensors
        s = torch.sigmoid(gate)
        grad_values = grad_gate = None
        g = grad.unsqueeze(1)
        if ctx.needs_input_grad[0]:
            g = g / values.shape[1]
            grad_values = g * s.unsqueeze(-1)
        if ctx.needs_input_grad[1]:
            grad_gate = (g * values).sum(-1) * s * (1 - s)
        return grad_values, grad_gate


def gated_mean_pool(values, gate):
    return GatedMeanPool.apply(values, gate)


function = gated_mean_pool
wrt = ("values", "gate")


def calls():
    g = torch.Generator().manual_seed(140)
    v = torch.randn(3, 4, 5, generator=g, dtype=torch.float64)
    s = torch.randn(3, 4, generator=g, dtype=torch.float64)
    return [((v, s), {}), ((v[:1, :2], s[:1, :2]), {})]


def primal(values, gate):
    return torch.einsum("btd,bt->bd", values, gate.sigmoid()) / values.shape[1]


def show():
    (v, s), _ = calls()[0]
    s.requires_grad_()
    (alone,) = torch.autograd.grad(function(v, s).sum(), s)
    (both,) = torch.autograd.grad(function(v.clone().requires_grad_(), s).sum(), s)
    (true,) = torch.autograd.grad(primal(v, s).sum(), s)
    return torch.allclose(both, true) and torch.allclose(alone, 4 * true)


TRUTH = {
    "sound": False,
    "defect": "The gradient of gate is right only while values need a gradient too; alone it lacks the division by "
    "T.",
    "rank": "wrong",
    "names": ["gradient of gate", "gate", "alone", "frozen", "needs_input_grad"],
    "first_law": "the gradient of gate",
}
