"""The matrix exponential. The wrong one is that of the package, and the right one is mended."""

import torch
from iunets.expm import expm

from gradspec import Case, FunctionSpec
from gradspec.promise import Waiver


class Mended(expm):
    @staticmethod
    def backward(ctx, y_bar):
        (m,) = ctx.saved_tensors
        return torch.func.vjp(torch.matrix_exp, m)[1](y_bar)[0]


RIGHT = FunctionSpec(
    Mended.apply,
    lambda m: torch.matrix_exp(m),
    cases=lambda make: [Case(0.1 * make(3, 3), name="small")],
    waivers=(Waiver(law="precision", case="small", reason="forward takes float32 and float64 only"),),
)
WRONG = RIGHT.for_(expm.apply)
