"""A linear system with a shift for each column, differentiated implicitly."""

import torch
from xitorch import LinearOperator
from xitorch.linalg.solve import solve_torchfcn

from gradspec import Case, FunctionSpec
from gradspec.promise import Waiver


def solver(function):
    rest = (None, "custom_exactsolve", {}, {}, 1)
    return lambda a, b, shift: function.apply(LinearOperator.m(a, is_hermitian=False), b, shift, *rest, a)


def solved(a, b, shift):
    shifted = a - shift[:, None, None] * torch.eye(len(a)).to(a)
    return torch.linalg.solve(shifted, b.mT).mT


RIGHT = FunctionSpec(
    solver(solve_torchfcn),
    solved,
    name="solve_torchfcn",
    cases=lambda make: [Case(make(3, 3) + 3 * torch.eye(3).to(make()), make(3, 2), make(2), name="3 by 3")],
    implementation=solve_torchfcn,
    waivers=(Waiver(law="checkpoint", case="3 by 3", reason="backward reads ctx.saved_tensors several times"),),
)


class LostSign(solve_torchfcn):
    @staticmethod
    def backward(ctx, x_bar):
        *rest, of_a = solve_torchfcn.backward(ctx, x_bar)
        return *rest, -of_a


WRONG = RIGHT.for_(solver(LostSign), name="LostSign", implementation=LostSign)
