"""The gradient of a loss that is flat in small steps, as of spikes, has no step that shows its sign."""

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import ModuleCase, ModuleSpec, Status, verify
from gradspec.laws import LAWS

FLOW = [law for law in LAWS if law.name == "gradient_flow"]


class Spike(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar / (1 + (torch.pi * x) ** 2)


class Turned(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, y_bar):
        return -y_bar


class Layer(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.tensor(0.9))

    def forward(self, x):
        return self.function(self.weight * x - 1)


@pytest.mark.parametrize(
    ("function", "status", "likely"),
    [
        (Spike.apply, Status.NOT_APPLICABLE, ""),
        (torch.tanh, Status.HOLDS, ""),
        (Turned.apply, Status.BROKEN, "the gradient has the wrong sign"),
    ],
)
def test_a_step_judges_a_loss_that_moves(function, status, likely):
    def cases(make):
        yield ModuleCase(name="rows", args=(function,), inputs=(2 * make(4, 5),), output=(5,))

    spec = ModuleSpec(name="layer", module=Layer, cases=cases, wrt=("x",))
    (verdict,) = verify([spec], FLOW).verdicts

    assert (verdict.status, verdict.finding.likely) == (status, likely), verdict.finding
