"""Apply an RY rotation to one qubit of a batch of state vectors."""

import torch


def _split(state, qubit, n):
    return state.view(-1, 2**qubit, 2, 2 ** (n - qubit - 1))


class RYGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, state, theta, qubit):
        n = state.shape[-1].bit_length() - 1
        s = _split(state.contiguous(), qubit, n)
        c, d = torch.cos(theta / 2), torch.sin(theta / 2)
        out = torch.stack([c * s[:, :, 0] - d * s[:, :, 1], d * s[:, :, 0] + c * s[:, :, 1]], 2)
        ctx.save_for_backward(state, theta)
        ctx.qubit, ctx.n = qubit, n
        return out.view(state.shape)

    @staticmethod
    def backward(ctx, grad):
        state, theta = ctx.saved_tensors
        g_state = RYGate.apply(grad, -theta, ctx.qubit) if ctx.needs_input_grad[0] else None
        g_theta = None
        if ctx.needs_input_grad[1]:
            turned = RYGate.apply(state, theta + torch.pi, ctx.qubit)
            g_theta = 0.5 * (grad.conj() * turned).sum().real
        return g_state, g_theta, None


def ry_gate(state, theta, qubit):
    return RYGate.apply(state, theta, qubit)


def primal(state, theta, qubit):
    n = state.shape[-1].bit_length() - 1
    c, d = torch.cos(theta / 2), torch.sin(theta / 2)
    gate = torch.stack([torch.stack([c, -d]), torch.stack([d, c])]).to(state.dtype)
    eye = torch.eye(2, dtype=state.dtype)
    full = torch.ones(1, 1, dtype=state.dtype)
    for q in range(n):
        full = torch.kron(full, gate if q == qubit else eye)
    return state @ full.t()


surrogate = primal
FUNCTION = ry_gate
WRT = ("state", "theta")


def _args(seed, batch, n, qubit):
    gen = torch.Generator().manual_seed(seed)
    state = torch.randn(batch, 2**n, generator=gen, dtype=torch.complex128)
    return state, torch.randn((), generator=gen, dtype=torch.float64), qubit


CALLS = [lambda: _args(0, 2, 3, 1), lambda: _args(1, 1, 1, 0), lambda: _args(2, 3, 2, 1)]
LIMITS = ("vmap", "jvp", "half")
DEFECT = None
KEYWORDS = ()
