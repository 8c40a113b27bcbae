"""`_NullSpaceBasis` of kornia: of a loss that does not depend on the choice of the basis the gradient is right.

Its docstring says that it is the derivative of the subspace; the singular vectors, which are its output, have another.
"""

from differences import both, drawn, off
from kornia.geometry.epipolar.essential import _NullSpaceBasis

points = drawn(2, 7, 9)


def _projector(x):
    basis = _NullSpaceBasis.apply(x)[0]
    return basis @ basis.mT


((of_subspace, right),) = both(_projector, points)
((of_basis, other),) = both(lambda x: _NullSpaceBasis.apply(x)[0], points)
print(f"of the subspace off by {off(of_subspace, right):.0e}, of the basis by {off(of_basis, other):.2f}")
assert off(of_subspace, right) < 1e-5
assert off(of_basis, other) > 0.1
assert "subspace" in _NullSpaceBasis.__doc__
