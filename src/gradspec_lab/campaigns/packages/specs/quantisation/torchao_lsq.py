"""A learned step, whose gradient is scaled by the number of weights."""

from torchao.prototype.paretoq.models.utils_quant import LsqBinaryTernaryExtension

from gradspec import FunctionSpec


def quantised(w, step, bits, layerwise):
    return (w / step).round().clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * step


def straight_through(w, step, bits, layerwise):
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    step = step.detach() + (step - step.detach()) / (w.numel() * high) ** 0.5
    q = (w / step).clamp(low, high)
    return (q + (q.round() - q).detach()) * step


def cases(make):
    yield make(3, 4), make(3, 1, low=0.2, high=0.5), 2, False
    yield 3 * make(2, 4), make(1, low=0.2, high=0.5), 4, True


RIGHT = FunctionSpec(LsqBinaryTernaryExtension.apply, quantised, surrogate=straight_through, cases=cases)


class BeyondTheRange(LsqBinaryTernaryExtension):
    @staticmethod
    def backward(ctx, w_bar):
        return w_bar, *LsqBinaryTernaryExtension.backward(ctx, w_bar)[1:]


WRONG = RIGHT.for_(BeyondTheRange.apply)
