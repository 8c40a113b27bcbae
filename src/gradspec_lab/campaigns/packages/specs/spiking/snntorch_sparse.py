"""A spike whose slope is that of a fast sigmoid above a bound, and 0 below it."""

from snntorch.surrogate import SparseFastSigmoid

from gradspec import FunctionSpec


def fast_sigmoid(v, slope, bound):
    return v.clamp(min=bound) / (1 + slope * v.clamp(min=bound).abs())


RIGHT = FunctionSpec(
    SparseFastSigmoid.apply,
    lambda v, slope, bound: (v > 0).float(),
    surrogate=fast_sigmoid,
    cases=lambda make: [(make(2, 4), 5.0, 0.1), (make(6), 2.0, -0.5)],
)


class Dense(SparseFastSigmoid):
    @staticmethod
    def backward(ctx, s_bar):
        (v,) = ctx.saved_tensors
        return s_bar / (ctx.slope * v.abs() + 1) ** 2, None, None


WRONG = RIGHT.for_(Dense.apply)
