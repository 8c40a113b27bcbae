"""An affine coupling, whose two networks are called again in backward."""

import torch
from memcnn.models.affine import AffineBlockFunction

from gradspec import FunctionSpec


class Net(torch.nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = torch.nn.Parameter(w.detach())

    def forward(self, x):
        return (x * self.w).exp(), x


def block(function):
    return lambda x, f, g: function.apply(x, Net(f), Net(g), f, g)


def coupled(x, f, g):
    x1, x2 = x.chunk(2, 1)
    y1 = x1 * (x2 * f).exp() + x2
    return torch.cat([y1, x2 * (y1 * g).exp() + y1], 1)


RIGHT = FunctionSpec(
    block(AffineBlockFunction),
    coupled,
    name="AffineBlockFunction",
    cases=lambda make: [(make(2, 4), make(2), make(2)), (make(3, 6), make(3), make(3))],
    implementation=AffineBlockFunction,
)


class Swapped(AffineBlockFunction):
    @staticmethod
    def backward(ctx, y_bar):
        of_x, _, _, of_f, of_g = AffineBlockFunction.backward(ctx, y_bar)
        return of_x, None, None, of_g, of_f


WRONG = RIGHT.for_(block(Swapped), name="Swapped", implementation=Swapped)
