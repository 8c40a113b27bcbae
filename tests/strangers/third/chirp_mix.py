import torch

_BASIS = {}


def _basis(n, dtype, rate):
    key = (n, dtype)
    if key not in _BASIS:
        t = torch.arange(n, dtype=dtype)
        _BASIS[key] = torch.cos(rate * t * t / n)
    return _BASIS[key]


class ChirpMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rate):
        basis = _basis(x.shape[-1], x.dtype, rate)
        ctx.save_for_backward(basis)
        return x * basis

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0], None


def chirp_mix(x, rate=1.0):
    """x (..., n) times a chirp of the given rate."""
    return ChirpMix.apply(x, rate)


function = chirp_mix
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(312)
    x = torch.randn(2, 6, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x,), {"rate": 2.5})]


def primal(x, rate=1.0):
    t = torch.arange(x.shape[-1], dtype=x.dtype)
    return x * torch.cos(rate * t**2 / x.shape[-1])


def show():
    return not all(torch.allclose(function(*a, **k), primal(*a, **k)) for a, k in calls())


TRUTH = {
    "sound": False,
    "defect": "The table is cached by length and dtype but not by rate: a later call with another rate is given the "
    "table of the first.",
    "rank": "wrong",
    "names": ["cache", "stale", "rate", "value", "state", "earlier call", "second call", "between calls"],
    "first_law": "the values",
}
