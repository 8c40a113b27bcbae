"""A quadratic program, differentiated by its optimality conditions."""

import torch

from gradspec import Accuracy, FunctionSpec, Supports
from gradspec_lab.campaigns.packages.absent import absent

absent("cvxpy")
from qpth.qp import QPFunction

QP = QPFunction(verbose=-1).__self__


def ascended(q, p, g, h, a, b):
    q, dual = (q + q.mT) / 2, torch.zeros_like(h)
    for _ in range(100):
        z = -torch.linalg.solve(q, p + dual @ g)
        dual = (dual + 0.5 * (g @ z - h)).clamp(min=0)
    return z[None]


def cases(make):
    none, g = make(0), make(1, 3, low=0.8, high=1.2)
    yield torch.diag(make(3).abs() + 1), -g[0], g, make(1).abs() / 9, none, none


RIGHT = FunctionSpec(QP.apply, ascended, cases=cases, accuracy=Accuracy(rtol=1e-5), supports=Supports(autocast=None))


class Unsigned(QP):
    @staticmethod
    def backward(ctx, z_bar):
        of_q, of_p, of_g, of_h, *rest = QP.backward(ctx, z_bar)
        return of_q, of_p, of_g, -of_h, *rest


WRONG = RIGHT.for_(Unsigned.apply)
