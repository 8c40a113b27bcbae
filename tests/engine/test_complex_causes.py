"""Why a gradient of complex numbers is wrong, in single precision as in double."""

from __future__ import annotations

import pytest
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings


class Energy(Function):
    """The real part of a quadratic form; backward takes the matrix for its adjoint."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return energy(x, a)

    @staticmethod
    def backward(ctx, e_bar):
        x, a = ctx.saved_tensors
        return 2 * e_bar[:, None] * (x @ a.mT), (e_bar[:, None] * x).mT @ x.conj()


def energy(x, a):
    return (x.conj() * (x @ a.mT)).sum(-1).real


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_matrix_that_is_taken_for_its_adjoint_is_told(dtype):
    call = f"(randn(3, 4, dtype={dtype}, requires_grad=True), randn(4, 4, dtype={dtype}, requires_grad=True))"
    (found, *_) = findings(audit(Energy, [call], reference=energy, laws=["vjp"], jobs=1).report)

    assert found.verdict.finding.likely.startswith("right where `a` is Hermitian")
