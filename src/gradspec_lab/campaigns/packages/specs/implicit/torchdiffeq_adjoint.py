"""An ordinary differential equation, differentiated by its adjoint."""

import torch
from torchdiffeq import odeint
from torchdiffeq._impl.adjoint import OdeintAdjointMethod

from gradspec import Accuracy, Case, FunctionSpec
from gradspec.promise import Waiver


def solver(function):
    def solve(w, y, t):
        tight, rest = (1e-6, 1e-6, "dopri5", {}), (t.requires_grad, *(p for p in [w] if p.requires_grad))
        return function.apply(None, lambda t, y: torch.tanh(y @ w) - t, y, t, *tight[:4], None, *tight, *rest)

    return solve


RIGHT = FunctionSpec(
    solver(OdeintAdjointMethod),
    lambda w, y, t: odeint(lambda t, y: torch.tanh(y @ w) - t, y, t, method="rk4", options={"step_size": 0.05}),
    name="OdeintAdjointMethod",
    wrt=("w", "y"),
    cases=lambda make: [Case(make(2, 2), make(2), torch.tensor([0.0, 0.3, 0.6]).double(), name="three times")],
    waivers=(Waiver(law="precision", case="three times", reason="half precision never reaches the tolerance"),),
    accuracy=Accuracy(rtol=1e-3),
    implementation=OdeintAdjointMethod,
)


class WithoutTheStart(OdeintAdjointMethod):
    @staticmethod
    def backward(ctx, y_bar):
        later = torch.cat([torch.zeros_like(y_bar[:1]), y_bar[1:]])
        return OdeintAdjointMethod.backward(ctx, later)


WRONG = RIGHT.for_(solver(WithoutTheStart), name="WithoutTheStart", implementation=WithoutTheStart)
