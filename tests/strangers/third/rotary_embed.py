import torch


def _turn(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class RotaryFn(torch.autograd.Function):
    @staticmethod
    def forward(q, cos, sin):
        return _turn(q, cos, sin)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, cos, sin = inputs
        ctx.save_for_backward(cos, sin)

    @staticmethod
    def backward(ctx, dq):
        cos, sin = ctx.saved_tensors
        return _turn(dq, cos, sin), None, None


def rotary_embed(q, base=10000.0, offset=0):
    """q: (batch, time, dim), dim even."""
    half = q.shape[-1] // 2
    freq = base ** (-torch.arange(half, dtype=q.dtype) / half)
    angle = torch.arange(offset, offset + q.shape[-2], dtype=q.dtype)[:, None] * freq
    return RotaryFn.apply(q, angle.cos(), angle.sin())


function = rotary_embed
wrt = ("q",)


def calls():
    g = torch.Generator().manual_seed(302)
    q = torch.randn(2, 4, 6, generator=g, dtype=torch.float64)
    return [((q,), {}), ((q[:1],), {"base": 50.0, "offset": 3})]


def primal(q, base=10000.0, offset=0):
    half = q.shape[-1] // 2
    freq = base ** (-torch.arange(half, dtype=q.dtype) / half)
    angle = torch.arange(offset, offset + q.shape[-2], dtype=q.dtype)[:, None] * freq
    z = torch.complex(q[..., :half], q[..., half:]) * torch.exp(1j * angle)
    return torch.cat((z.real, z.imag), -1)


def show():
    (q,), _ = calls()[0]
    q.requires_grad_()
    v = torch.arange(q.numel(), dtype=q.dtype).reshape(q.shape).cos()
    (mine,) = torch.autograd.grad(function(q), q, v)
    (true,) = torch.autograd.grad(primal(q), q, v)
    return torch.allclose(function(q), primal(q)) and (mine - true).abs().max() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward turns the cotangent by the same angle as forward, where the transpose turns back by the "
    "negative angle: the sine lacks its minus sign.",
    "rank": "wrong",
    "names": ["gradient of q", "sign", "transpose", "rotation", "sin"],
    "first_law": "the gradient of q",
}
