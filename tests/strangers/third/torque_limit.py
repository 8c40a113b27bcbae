import functools

import torch


@functools.cache
def make_limiter(low, high):
    class Limiter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, torque):
            ctx.save_for_backward(torque)
            return torque.clamp(low, high)

        @staticmethod
        def backward(ctx, grad):
            (torque,) = ctx.saved_tensors
            return grad * (torque.abs() <= high)

    return Limiter.apply


def torque_limit(torque, low=-1.0, high=1.0):
    """Limits of a motor; braking and driving may differ."""
    return make_limiter(low, high)(torque)


function = torque_limit
wrt = ("torque",)


def calls():
    x = torch.tensor([-2.5, -1.2, -0.7, -0.1, 0.4, 0.9, 1.3, 2.6], dtype=torch.float64)
    return [((x,), {}), ((x.view(2, 4),), {"low": -0.5, "high": 2.0})]


def primal(torque, low=-1.0, high=1.0):
    return torch.clamp(torque, low, high)


def show():
    off = []
    for (x,), k in calls():
        x.requires_grad_()
        (mine,) = torch.autograd.grad(function(x, **k).sum(), x)
        (true,) = torch.autograd.grad(primal(x, **k).sum(), x)
        off.append((mine - true).abs().sum().item())
    return off[0] == 0 and off[1] >= 1


TRUTH = {
    "sound": False,
    "defect": "backward takes the lower limit to be minus the upper one: torques between -high and low have a gradient "
    "although forward cuts them.",
    "rank": "wrong",
    "names": ["gradient of torque", "lower", "limit", "clamp", "bound", "asymmetric"],
    "first_law": "the gradient of torque",
}
