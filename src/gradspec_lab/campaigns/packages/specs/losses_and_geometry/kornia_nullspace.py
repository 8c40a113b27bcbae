"""A basis of a null space. Only the space is defined, so the spec looks at its projector."""

import torch
from kornia.geometry.epipolar.essential import _NullSpaceBasis

from gradspec import Accuracy, FunctionSpec


def projector(function):
    def project(x):
        basis = function.apply(x)[0]
        return basis @ basis.mT

    return project


RIGHT = FunctionSpec(
    projector(_NullSpaceBasis),
    lambda x: torch.eye(9).to(x) - x.mT @ torch.linalg.solve(x @ x.mT, x),
    name="_NullSpaceBasis",
    cases=lambda make: [make(2, 5, 9)],
    accuracy=Accuracy(rtol=1e-9),
    implementation=_NullSpaceBasis,
)


class Averaged(_NullSpaceBasis):
    @staticmethod
    def backward(ctx, basis_bar, *rest):
        x, s, v = ctx.saved_tensors
        outside, inside = v[:, :, :-4], v[:, :, -4:]
        m = outside @ ((outside.mT @ basis_bar) / s[:, :, None] ** 2) @ inside.mT
        return -x @ (m + m.mT) / 2


WRONG = RIGHT.for_(projector(Averaged), name="Averaged", implementation=Averaged)
