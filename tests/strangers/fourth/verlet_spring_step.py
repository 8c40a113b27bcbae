"""One velocity-Verlet step of independent springs (unit mass), stiffness shared by the batch."""

import torch


class VerletStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, v, k, dt):
        ctx.set_materialize_grads(False)
        half = v - 0.5 * dt * k * q
        q_new = q + dt * half
        v_new = half - 0.5 * dt * k * q_new
        ctx.save_for_backward(q, k, q_new)
        ctx.dt = dt
        return q_new, v_new

    @staticmethod
    def backward(ctx, gq_new, gv_new):
        q, k, q_new = ctx.saved_tensors
        hdt = 0.5 * ctx.dt
        if gq_new is None and gv_new is None:
            return None, None, None, None
        gq_new = torch.zeros_like(q) if gq_new is None else gq_new
        gv_new = torch.zeros_like(q) if gv_new is None else gv_new
        gq_tot = gq_new - hdt * k * gv_new
        g_half = gv_new + ctx.dt * gq_tot
        gk = -hdt * (gv_new * q_new + g_half * q)
        return gq_tot - hdt * k * g_half, g_half, gk.reshape(-1, k.numel()).sum(0), None


def verlet_step(q, v, k, dt):
    return VerletStep.apply(q, v, k, dt)


def primal(q, v, k, dt):
    acc = -k * q
    q_new = q + v * dt + 0.5 * acc * dt**2
    return q_new, v + 0.5 * dt * (acc - k * q_new)


surrogate = primal
FUNCTION = verlet_step
WRT = ("q", "v", "k")


def _args(seed, dt, *shape):
    gen = torch.Generator().manual_seed(seed)
    q, v = (torch.randn(*shape, generator=gen, dtype=torch.float64) for _ in range(2))
    return q, v, torch.rand(shape[-1], generator=gen, dtype=torch.float64) + 0.5, dt


CALLS = [lambda: _args(0, 0.1, 4, 3), lambda: _args(1, 0.5, 2), lambda: _args(2, -0.3, 2, 1, 3)]
LIMITS = ("vmap", "jvp")
DEFECT = ""
KEYWORDS = ()
