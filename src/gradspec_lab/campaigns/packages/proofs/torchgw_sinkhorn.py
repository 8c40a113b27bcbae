"""Sinkhorn of torchgw: the implicit gradient is right, but for rounding; the approximate one is named so.

Beside costs of 277 and a regularisation of 0.16 a part of the plan is zero, and a system that backward solves is
nearly singular: a change of the cost in its last digit moves the gradient by 1e-8. So does another order of memory.
"""

import torch
from differences import both, drawn, off
from torchgw._solver import _SinkhornApproximate, _SinkhornImplicit

double = {"dtype": torch.float64}
a, b = torch.full((6,), 1 / 6, **double), torch.full((5,), 1 / 5, **double)
cost = drawn(6, 5)
((got, expected),) = both(lambda c: _SinkhornImplicit.apply(c, a, b, 0.5, 1000, 1e-13, 10), cost)
print(f"implicit: off by {off(got, expected):.0e}")
assert off(got, expected) < 1e-6
said = _SinkhornApproximate.__doc__.split(".")[0].strip()
((got, expected),) = both(lambda c: _SinkhornApproximate.apply(c, a, b, 0.5, 1000, 1e-13, 10, False, 1.0), cost)
print(f"approximate: off by {off(got, expected):.2f}; its docstring: {said!r}")
assert off(got, expected) > 0.1
assert "approximation" in _SinkhornApproximate.__doc__

torch.manual_seed(0)
hard = torch.rand(6, 5, **double) + 1
hard[:, 4] = hard[5] = 277.0
hard[5, 4] = 0.0
a, b = torch.full((6,), 0.2, **double), torch.tensor([0.25, 0.25, 0.25, 0.25, 0.2], **double)
weights = torch.randn(6, 5, **double)


def _gradient(c):
    c = c.clone(memory_format=torch.preserve_format).requires_grad_()
    plan = _SinkhornImplicit.apply(c, a, b, 0.1567, 100, 5e-4, 10)
    return torch.autograd.grad((weights * plan).sum(), c)[0]


plain = _gradient(hard)
moved = off(_gradient(hard * (1 + 2e-16 * torch.randn(6, 5, **double))), plain)
turned = off(_gradient(hard.T.contiguous().T), plain)
print(f"another last digit of the cost moves the gradient by {moved:.0e}, another order of memory by {turned:.0e}")
assert turned < 100 * max(moved, 1e-12)
