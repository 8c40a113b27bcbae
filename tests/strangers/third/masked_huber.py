import torch


class MaskedHuber(torch.autograd.Function):
    """Huber loss of TD errors, averaged over the steps before the end of the episode."""

    @staticmethod
    def forward(ctx, value, target, valid, delta):
        err = value - target
        ctx.save_for_backward(value, target, valid)
        ctx.delta = delta
        a = err.abs()
        loss = torch.where(a <= delta, 0.5 * err**2, delta * (a - 0.5 * delta))
        return (loss * valid).sum() / valid.sum()

    @staticmethod
    def backward(ctx, grad):
        value, target, valid = ctx.saved_tensors
        g = grad * (value - target).clamp(-ctx.delta, ctx.delta) / valid.sum()
        return g, -g, None, None


def masked_huber(value, target, valid, delta=1.0):
    return MaskedHuber.apply(value, target, valid, delta)


function = masked_huber
wrt = ("value", "target")


def calls():
    g = torch.Generator().manual_seed(323)
    v, t = 2 * torch.randn(2, 3, 4, generator=g, dtype=torch.float64)
    valid = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]).bool()
    return [((v, t, torch.ones_like(valid)), {}), ((v, t, valid), {"delta": 0.5})]


def primal(value, target, valid, delta=1.0):
    return torch.nn.functional.huber_loss(value[valid], target[valid], delta=delta)


def show():
    off = []
    for (v, *rest), k in calls():
        v.requires_grad_()
        (mine,) = torch.autograd.grad(function(v, *rest, **k), v)
        (true,) = torch.autograd.grad(primal(v, *rest, **k), v)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-12 and off[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "The mask of valid steps is applied in forward and forgotten in backward: steps after the end get "
    "gradients.",
    "rank": "wrong",
    "names": ["mask", "valid", "gradient of value", "gradient of target", "masked"],
    "first_law": "the gradient of value",
}
