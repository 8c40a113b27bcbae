"""The gradients of linear_operator are right on symmetric matrices, which all its operators are of.

A root R of a matrix is determined up to a rotation: the gradient of R is that of another root, and of R R' the right
one. That of a log-determinant by random probes is an estimate of its own, as `num_trace_samples` documents: the more
probes, the closer.
"""

import torch
from differences import both, off
from linear_operator import (
    functions,
    inv_quad,
    inv_quad_logdet,
    operators,
    pivoted_cholesky,
    settings,
    solve,
    sqrt_inv_matmul,
)

double = {"dtype": torch.float64}
torch.manual_seed(0)
root = torch.randn(6, 6, **double)
matrix, b = (root @ root.T + 6 * torch.eye(6, **double)).requires_grad_(), torch.randn(6, 2, **double)
shape = torch.Size((6, 6))


def _operator(a):
    return operators.DenseLinearOperator((a + a.mT) / 2)


def _root(a):
    given = (100, torch.float64, torch.device("cpu"), torch.Size(), shape, True, False, None)
    operator = _operator(a)
    apply = functions._root_decomposition.RootDecomposition.apply
    torch.manual_seed(1)
    return apply(operator.representation_tree(), *given, *operator.representation())[0]


def _diagonal(a):
    given, operator = (torch.device("cpu"), torch.float64, shape, 100, torch.Size()), _operator(a)
    torch.manual_seed(1)
    values, vectors = functions._diagonalization.Diagonalization.apply(
        operator.representation_tree(), *given, *operator.representation()
    )
    return (vectors * values) @ vectors.mT


def _off(function):
    ((got, expected),) = both(function, matrix)
    return off(got, expected)


def _square(x):
    return x @ x.mT


found = {
    "Solve": _off(lambda a: solve(_operator(a), b)),
    "InvQuad": _off(lambda a: inv_quad(_operator(a), b)),
    "PivotedCholesky": _off(lambda a: pivoted_cholesky(_operator(a), rank=3)),
    "SqrtInvMatmul": _off(lambda a: sqrt_inv_matmul(_operator(a), b)),
    "Diagonalization": _off(_diagonal),
    "RootDecomposition, of R R'": _off(lambda a: _square(_root(a))),
}
with settings.max_cholesky_size(0):
    found["Solve by conjugate gradients"] = _off(lambda a: solve(_operator(a), b))
    found["InvQuadLogdet, the first"] = _off(lambda a: inv_quad_logdet(_operator(a), b, logdet=True)[0])
    right = torch.linalg.inv(matrix.detach())
    apart = {}
    for probes in (10, 100, 10000):
        with settings.num_trace_samples(probes):
            torch.manual_seed(0)
            value = inv_quad_logdet(_operator(matrix), b, logdet=True)[1]
            apart[probes] = off(torch.autograd.grad(value, matrix)[0], right)
print("off by " + ", ".join(f"{name} {one:.0e}" for name, one in found.items()))
print(f"RootDecomposition, of R itself: {_off(_root):.2f}")
print(
    "InvQuadLogdet, the log-determinant by 10, 100, 10000 probes: " + ", ".join(f"{one:.2f}" for one in apart.values())
)
assert max(found.values()) < 1e-4
assert _off(_root) > 0.1
assert apart[10000] < 0.05 < apart[10]
