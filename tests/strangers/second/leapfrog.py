import torch
from torch.autograd.function import once_differentiable


class Leapfrog(torch.autograd.Function):
    """n kick-drift-kick steps of a pendulum, H = p^2/2 - cos q. Returns q and p in one tensor."""

    @staticmethod
    def forward(ctx, q0, p0, dt, steps):
        q, p = q0.clone(), p0.clone()
        positions = [q]
        for _ in range(steps):
            p -= 0.5 * dt * torch.sin(q)
            q += dt * p
            p -= 0.5 * dt * torch.sin(q)
            positions.append(q)
        ctx.positions, ctx.dt = positions, dt
        return torch.cat([q, p], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        dt = ctx.dt
        dq, dp = (g.clone() for g in grad.chunk(2, -1))
        for i in range(len(ctx.positions) - 1, 0, -1):
            dq -= 0.5 * dt * torch.cos(ctx.positions[i]) * dp
            dp += dt * dq
            dq -= 0.5 * dt * torch.cos(ctx.positions[i - 1]) * dp
        return dq, dp, None, None


def leapfrog(q0, p0, dt=0.3, steps=4):
    return Leapfrog.apply(q0, p0, dt, steps)


function = leapfrog
wrt = ("q0", "p0")


def calls():
    g = torch.Generator().manual_seed(129)
    q, p = torch.randn(2, 3, 2, generator=g, dtype=torch.float64)
    return [((q, p), {}), ((q[0], p[0]), {"dt": 0.5, "steps": 1})]


def primal(q0, p0, dt=0.3, steps=4):
    q, p = q0, p0
    for _ in range(steps):
        p = p - 0.5 * dt * q.sin()
        q = q + dt * p
        p = p - 0.5 * dt * q.sin()
    return torch.cat([q, p], -1)


def show():
    (q, p), _ = calls()[0]
    q.requires_grad_()
    (mine,) = torch.autograd.grad(function(q, p).sum(), q)
    (true,) = torch.autograd.grad(primal(q, p).sum(), q)
    return torch.allclose(function(q, p), primal(q, p)) and not torch.allclose(mine, true, rtol=1e-2)


TRUTH = {
    "sound": False,
    "defect": "The list of saved positions holds one tensor that the later steps overwrite, so the gradients use "
    "the last position at every step.",
    "rank": "wrong",
    "names": ["gradient of q0", "gradient of p0", "q0", "saved positions", "overwritten"],
    "first_law": "the gradient of q0",
}
