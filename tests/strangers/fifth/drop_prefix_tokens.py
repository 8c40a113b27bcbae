"""Strip the prompt tokens from a batch of hidden states on the way through numpy."""

import torch


class DropPrefix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, prefix):
        ctx.prefix = prefix
        rest = hidden.detach().numpy()[:, prefix:]
        return torch.from_numpy(rest)

    @staticmethod
    def backward(ctx, grad):
        head = grad.new_zeros(grad.shape[0], ctx.prefix, *grad.shape[2:])
        return torch.cat([head, grad], 1), None


def drop_prefix(hidden, prefix):
    return DropPrefix.apply(hidden, prefix)


def primal(hidden, prefix):
    return hidden.narrow(1, prefix, hidden.shape[1] - prefix).clone()


surrogate = primal
FUNCTION = drop_prefix
WRT = ("hidden",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 2, 5, 3), 2), lambda: (_x(1, 1, 4), 1), lambda: (_x(2, 3, 3, 2), 1)]
LIMITS = ("vmap", "jvp", "half")
DEFECT = "the output shares memory with the input though autograd takes it for a fresh tensor"
KEYWORDS = ("view", "alias", "shares", "memory", "storage", "fresh")
