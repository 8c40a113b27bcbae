"""The absolute value, with slope 1 at 0."""

import torch
from brevitas.ops.autograd_ste_ops import AbsBinarySignGradFn

from gradspec import Case, FunctionSpec


def cases(make):
    yield make(2, 3)
    yield Case(torch.tensor([0.0, -1.0, 0.0, 2.0], dtype=torch.float64), name="zeros")


RIGHT = FunctionSpec(
    AbsBinarySignGradFn.apply, lambda x: x.abs(), surrogate=lambda x: torch.where(x >= 0, x, -x), cases=cases
)


class FlatAtZero(AbsBinarySignGradFn):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.sign())
        return x.abs()


WRONG = RIGHT.for_(FlatAtZero.apply)
