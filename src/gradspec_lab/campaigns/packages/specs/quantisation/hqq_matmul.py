"""A layer of frozen weights, of which only the product is given."""

from hqq.core.quantize import HQQMatmulNoCacheMul

from gradspec import FunctionSpec


def cases(make):
    w = make(3, 3)
    yield make(2, 3), lambda x, transpose: x @ (w.T if transpose else w), make(3)
    yield make(2, 4, 3), lambda x, transpose: x @ (w.T if transpose else w), None


RIGHT = FunctionSpec(
    HQQMatmulNoCacheMul.apply,
    lambda x, matmul, bias: matmul(x, transpose=True) + (0 if bias is None else bias),
    cases=cases,
)


class TransposedTwice(HQQMatmulNoCacheMul):
    @staticmethod
    def backward(ctx, y_bar):
        _, _, of_bias = HQQMatmulNoCacheMul.backward(ctx, y_bar)
        return ctx.matmul(y_bar, transpose=True), None, of_bias


WRONG = RIGHT.for_(TransposedTwice.apply)
