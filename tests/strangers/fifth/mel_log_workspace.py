"""Log-mel energies, the filterbank output kept in a reused work buffer."""

import torch
from torch.autograd.function import once_differentiable

_WORK = {}


def _workspace(shape, like):
    key = (tuple(shape), like.dtype, like.device)
    if key not in _WORK:
        _WORK[key] = torch.empty(shape, dtype=like.dtype, device=like.device)
    return _WORK[key]


class LogMel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, power, bank, floor):
        mel = _workspace((power.shape[0], bank.shape[1]), power)
        torch.matmul(power, bank, out=mel)
        mel.add_(floor)
        ctx.mel = mel
        ctx.save_for_backward(bank)
        return mel.log()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (bank,) = ctx.saved_tensors
        return (grad / ctx.mel) @ bank.t(), None, None


def log_mel(power, bank, floor):
    return LogMel.apply(power, bank, floor)


def primal(power, bank, floor):
    return torch.log(torch.einsum("tf,fm->tm", power, bank) + floor)


surrogate = primal
FUNCTION = log_mel
WRT = ("power",)


def _args(seed, t, f, m):
    gen = torch.Generator().manual_seed(seed)
    power = torch.rand(t, f, generator=gen, dtype=torch.float64)
    return power, torch.rand(f, m, generator=gen, dtype=torch.float64), 1e-3


CALLS = [lambda: _args(0, 3, 5, 2), lambda: _args(1, 3, 5, 2), lambda: _args(2, 1, 4, 3)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "the buffer that backward reads is shared: a second forward of the same shape before backward overwrites it"
KEYWORDS = ("state", "buffer", "global", "between calls", "overwritten", "call")
