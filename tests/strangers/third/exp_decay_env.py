import torch


class DecayEnvelope(torch.autograd.Function):
    """Delayed exponential envelopes, one per voice: gain * exp(-rate * t) after `delay` silent samples."""

    @staticmethod
    def forward(ctx, rate, gain, length, delay):
        t = torch.arange(length, dtype=rate.dtype, device=rate.device)
        env = torch.exp(-rate[:, None] * t)
        ctx.env = env
        ctx.delay = delay
        ctx.save_for_backward(gain, t)
        silence = env.new_zeros(rate.shape[0], delay)
        return torch.cat([silence, env.mul_(gain[:, None])], dim=1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        gain, t = ctx.saved_tensors
        grad = grad[:, ctx.delay :]
        g_gain = (grad * ctx.env).sum(1)
        g_rate = -(grad * ctx.env * gain[:, None] * t).sum(1)
        return g_rate, g_gain, None, None


def exp_decay_env(rate, gain, length=6, delay=2):
    return DecayEnvelope.apply(rate, gain, length, delay)


function = exp_decay_env
wrt = ("rate", "gain")


def calls():
    r = torch.tensor([0.3, 0.9, 1.4], dtype=torch.float64)
    g = torch.tensor([1.5, 0.7, -2.0], dtype=torch.float64)
    return [((r, g), {}), ((r[:2], g[:2]), {"length": 4, "delay": 0})]


def primal(rate, gain, length=6, delay=2):
    t = torch.arange(length, dtype=rate.dtype)
    return torch.nn.functional.pad(gain[:, None] * torch.exp(-rate[:, None] * t), (delay, 0))


def show():
    (r, g), _ = calls()[0]
    g.requires_grad_()
    (mine,) = torch.autograd.grad(function(r, g).sum(), g)
    (true,) = torch.autograd.grad(primal(r, g).sum(), g)
    return torch.allclose(mine, true * g) and not torch.allclose(mine, true)


TRUTH = {
    "sound": False,
    "defect": "The envelope is kept on ctx and then multiplied by the gain in place, so that backward reads it with "
    "the gain already in it.",
    "rank": "wrong",
    "names": ["gradient of gain", "gradient of rate", "in place", "saved", "modified"],
    "first_law": "the gradient of rate",
}
