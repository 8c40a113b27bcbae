import torch


class DeadZone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, width):
        out = torch.where(u.abs() > width, u - width * u.sign(), torch.zeros_like(u))
        ctx.save_for_backward(u)
        ctx.width = width
        return out

    @staticmethod
    def backward(ctx, grad_output):
        u, = ctx.saved_tensors
        outside = (u.abs() > ctx.width).to(u.dtype)
        return grad_output * u.sign() * outside, None


def dead_zone(u, width=10.0):
    """actuator (valve) that does not move for small commands"""
    return DeadZone.apply(u, width)


function = dead_zone
wrt = ("u",)


def calls():
    g = torch.Generator().manual_seed(106)
    u = 18 * torch.rand(4, 3, generator=g, dtype=torch.float64) - 9
    return [((u,), {}), ((u[0], 9.5), {})]


def primal(u, width=10.0):
    return (u - width).clamp(min=0) - (-u - width).clamp(min=0)


def show():
    u = torch.tensor([-20.0, 20.0], requires_grad=True)
    function(u).sum().backward()
    return u.grad.tolist() == [-1.0, 1.0]


TRUTH = {
    "sound": False,
    "defect": "The slope is +1 on both sides of the dead zone, backward multiplies by sign(u) and is wrong for u < -width.",
    "rank": "wrong",
    "names": ["sign", "gradient of u", "negative", "-1"],
    "first_law": "the gradient of u",
    "flat_everywhere": True,
}
