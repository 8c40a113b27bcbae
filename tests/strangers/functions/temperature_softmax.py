import torch


class TemperatureSoftmax(torch.autograd.Function):
    """Softmax with a learned temperature (calibration)."""

    @staticmethod
    def forward(ctx, logits, temperature):
        p = torch.softmax(logits / temperature, dim=-1)
        ctx.save_for_backward(temperature, p)
        return p

    @staticmethod
    def backward(ctx, grad_p):
        temperature, p = ctx.saved_tensors
        dot = (grad_p * p).sum(-1, keepdim=True)
        grad_logits = p * (grad_p - dot) / temperature
        return grad_logits, None


def calibrated_softmax(logits, temperature):
    return TemperatureSoftmax.apply(logits, temperature)


function = calibrated_softmax
wrt = ("logits", "temperature")


def calls():
    g = torch.Generator().manual_seed(23)
    a = torch.randn(4, 3, generator=g, dtype=torch.float64)
    b = torch.randn(2, 6, generator=g, dtype=torch.float64)
    t = torch.tensor(1.7, dtype=torch.float64)
    return [((a, t), {}), ((b, t * 0.4), {})]


def primal(logits, temperature):
    return torch.softmax(logits / temperature, dim=-1)


def show():
    (a, t), _ = calls()[0]
    t.requires_grad_()
    out = function(a, t)
    (mine,) = torch.autograd.grad(out[:, 0].sum(), t, allow_unused=True)
    (true,) = torch.autograd.grad(primal(a, t)[:, 0].sum(), t)
    return mine is None and true.abs() > 1e-3


TRUTH = {
    "sound": False,
    "defect": "temperature gets no gradient (None) although the output depends on it.",
    "rank": "wrong",
    "names": ["temperature", "None", "missing", "no gradient"],
    "first_law": "the gradient of temperature",
}
