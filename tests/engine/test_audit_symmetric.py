"""An audit moves a symmetric matrix, of which a function reads one triangle, along symmetric directions."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS

CASE = "(tensor([[2.0, 0.5], [0.5, 1.0]]),)"
ROUNDED = "(tensor([[2.0, 0.5000001], [0.5, 1.0]]),)"
BATCH = "(tensor([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.25], [-0.25, 3.0]]]),)"


class Eigenvalues(Function):
    """`eigh` reads the lower triangle; the gradient is the symmetric one."""

    factor = 1

    @staticmethod
    def forward(ctx, a):
        w, q = torch.linalg.eigh(a)
        ctx.save_for_backward(q)
        return w

    @classmethod
    def backward(cls, ctx, w_bar):
        (q,) = ctx.saved_tensors
        return cls.factor * (q * w_bar[..., None, :]) @ q.mT


class Twice(Eigenvalues):
    factor = 2


class Skew(Eigenvalues):
    """What is added is not seen in any symmetric direction."""

    @classmethod
    def backward(cls, ctx, w_bar):
        return Eigenvalues.backward(ctx, w_bar) + w_bar.sum() * torch.tensor([[0, 1], [-1, 0]])


class Transposed(Function):
    """A product reads every element: the transpose of its gradient is wrong, right as it is in symmetric directions."""

    @staticmethod
    def forward(ctx, a):
        return a @ torch.arange(4.0, dtype=a.dtype).view(2, 2)

    @staticmethod
    def backward(ctx, y_bar):
        return (y_bar @ torch.arange(4.0, dtype=y_bar.dtype).view(2, 2).mT).mT


def found(function, case, *names):
    laws = [law for law in LAWS if law.name in names]
    return {v.law: v.status for v in audit(function, [case], laws=laws).report.verdicts}


@pytest.mark.parametrize("case", [CASE, BATCH])
@pytest.mark.parametrize("function", [torch.linalg.eigvalsh, torch.linalg.cholesky])
def test_a_function_of_symmetric_matrices_is_not_accused(function, case):
    assert found(function, case, "surrogate", "adjoint", "second_order") == {
        "surrogate": Status.HOLDS,
        "adjoint": Status.HOLDS,
        "second_order": Status.HOLDS,
    }


@pytest.mark.parametrize("case", [CASE, BATCH])
def test_forward_mode_that_is_compiled_is_not_accused(case):
    assert found(torch.linalg.cholesky, case, "compile_jvp") == {"compile_jvp": Status.HOLDS}


@pytest.mark.parametrize("case", [CASE, ROUNDED])
def test_a_gradient_of_an_own_function_of_symmetric_matrices_is_not_accused(case):
    # A product `x @ x.mT` in float32 is symmetric but for its rounding.
    assert found(Eigenvalues, case, "surrogate") == {"surrogate": Status.HOLDS}


@pytest.mark.slow
@pytest.mark.parametrize("case", [CASE, ROUNDED])
@pytest.mark.parametrize("function", [Twice, Skew, Transposed])
def test_a_wrong_gradient_of_a_symmetric_matrix_is_broken(function, case):
    assert found(function, case, "surrogate") == {"surrogate": Status.BROKEN}


def test_a_second_derivative_of_eigenvalues_that_is_lost_is_broken():
    # The eigenvectors are saved as forward has them, and autograd keeps nothing of how they depend on the matrix.
    assert found(Eigenvalues, CASE, "second_order") == {"second_order": Status.BROKEN}


def test_forward_mode_that_is_wrong_in_symmetric_directions_is_broken():
    class Forward(Function):
        @staticmethod
        def forward(a):
            return (*torch.linalg.eigh(a),)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])
            ctx.save_for_forward(output[1])

        @staticmethod
        def backward(ctx, w_bar, _):
            (q,) = ctx.saved_tensors
            return (q * w_bar) @ q.mT

        @staticmethod
        def jvp(ctx, a_dot):
            (q,) = ctx.saved_tensors
            return 2 * (q.mT @ a_dot @ q).diagonal(), None

    assert found(lambda a: Forward.apply(a)[0], CASE, "adjoint") == {"adjoint": Status.BROKEN}


class Fidelity(Function):
    """tr sqrt(sqrt(a) b sqrt(a)): of `a` one triangle is read, of `b` all, in a product of which one triangle is."""

    factor = 1

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        w, q = torch.linalg.eigh(a)
        root = (q * w.sqrt()) @ q.mT
        return torch.linalg.eigvalsh(root @ b @ root).sqrt().sum()

    @classmethod
    def backward(cls, ctx, y_bar):
        return tuple(
            y_bar * cls.factor * _half(one, other) for one, other in (ctx.saved_tensors, ctx.saved_tensors[::-1])
        )


def _half(a, b):
    w, q = torch.linalg.eigh(b)
    root = (q * w.sqrt()) @ q.mT
    w, q = torch.linalg.eigh(root @ a @ root)
    return root @ (q * w.rsqrt()) @ q.mT @ root / 2


class FidelityTwice(Fidelity):
    factor = 2


STATES = "(tensor([[2.0, 0.5], [0.5, 1.0]]), tensor([[1.0, -0.25], [-0.25, 3.0]]))"


@pytest.mark.parametrize(
    ("function", "status"),
    [(Fidelity, Status.HOLDS), pytest.param(FidelityTwice, Status.BROKEN, marks=pytest.mark.slow)],
)
def test_a_matrix_in_a_product_that_is_taken_for_symmetric_moves_so_too(function, status):
    assert [verdict.status for verdict in audit(function, [STATES], laws=["surrogate"], jobs=1).report.verdicts] == [
        status
    ]
