import torch


class EMASmoother(torch.autograd.Function):
    """y_t = a x_t + (1 - a) y_{t-1}, y before the start is zero. x (time, channels), a (channels,)."""

    @staticmethod
    def forward(ctx, x, a):
        y = torch.empty_like(x)
        state = torch.zeros_like(x[0])
        for t in range(len(x)):
            state = a * x[t] + (1 - a) * state
            y[t] = state
        ctx.save_for_backward(x, a, y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        x, a, y = ctx.saved_tensors
        carry = torch.zeros_like(grad[0])
        g_x, g_a = torch.empty_like(x), torch.zeros_like(a)
        for t in reversed(range(len(x))):
            before = y[t - 1] if t > 0 else torch.zeros_like(y[0])
            carry = grad[t] + (1 - a) * carry
            g_x[t] = a * carry
            g_a += grad[t] * (x[t] - before)
        return g_x, g_a


def ema_smoother(x, a):
    return EMASmoother.apply(x, a)


function = ema_smoother
wrt = ("x", "a")


def calls():
    g = torch.Generator().manual_seed(337)
    x = torch.randn(5, 2, generator=g, dtype=torch.float64)
    a = torch.tensor([0.3, 0.8], dtype=torch.float64)
    return [((x, a), {}), ((x[:1], a), {})]


def primal(x, a):
    lag = (torch.arange(len(x))[:, None] - torch.arange(len(x))[None, :]).unsqueeze(-1)
    kernel = torch.where(lag >= 0, a * (1 - a) ** lag.clamp(min=0), 0.0)
    return torch.einsum("tsc,sc->tc", kernel, x)


def show():
    (x, a), _ = calls()[0]
    x.requires_grad_(), a.requires_grad_()
    mine = torch.autograd.grad(function(x, a).sum(), (x, a))
    true = torch.autograd.grad(primal(x, a).sum(), (x, a))
    return torch.allclose(mine[0], true[0]) and not torch.allclose(mine[1], true[1], rtol=1e-2)


TRUTH = {
    "sound": False,
    "defect": "The gradient of a uses the incoming gradient of each step, not what has been carried back from the "
    "later ones: what a does through the state is missing.",
    "rank": "wrong",
    "names": ["gradient of a", "carry", "recurrent", "state", "accumulated"],
    "first_law": "the gradient of a",
}
