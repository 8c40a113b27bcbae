"""Levels between the integers, with a trained scale."""

from torchao.prototype.paretoq.models.utils_quant import StretchedElasticQuant

from gradspec import FunctionSpec


def rounded(q, bits):
    levels = 2 ** (bits - 1)
    return ((q.clamp(-0.99, 0.99) * levels - 0.5).round() + 0.5) / levels


def quantised(w, scale, bits, layerwise):
    return rounded(w / scale, bits) * scale


def straight_through(w, scale, bits, layerwise):
    scale = scale.detach() + (scale - scale.detach()) / (w.numel() * (2 ** (bits - 1) - 1)) ** 0.5
    q = w / scale
    inside = (q.abs() <= 0.99).to(q.dtype)
    return (rounded(q, bits) + inside * (q - q.detach())) * scale


def cases(make):
    yield make(3, 4), make(3, 1, low=0.3, high=0.9), 2, False
    yield make(2, 4), make(1, low=0.3, high=0.9), 4, True


RIGHT = FunctionSpec(StretchedElasticQuant.apply, quantised, surrogate=straight_through, cases=cases)


class Unscaled(StretchedElasticQuant):
    @staticmethod
    def backward(ctx, w_bar):
        ctx.other = 1.0, *ctx.other[1:]
        return StretchedElasticQuant.backward(ctx, w_bar)


WRONG = RIGHT.for_(Unscaled.apply)
