"""`AdjT` of SE3 and Sim3 in PyPose: the gradient of the tangent, a plain vector, is not a derivative."""

from functools import partial

import torch
from differences import both, drawn, off
from pypose.lietensor import operation as op

for group, algebra, size, is_right in (("SO3", "so3", 3, True), ("SE3", "se3", 6, False), ("Sim3", "sim3", 7, False)):
    adjoint, transposed, inverse = (getattr(op, f"{group}_{name}").apply for name in ("AdjXa", "AdjTXa", "Inv"))
    x, a = getattr(op, f"{algebra}_Exp").apply(drawn(2, size, scale=0.7).detach()), drawn(2, size, seed=1)
    ((got, expected),) = both(partial(transposed, x), a)

    # The same values by other operations of the package, whose gradient is right.
    same = torch.allclose(transposed(x, a), adjoint(inverse(x), a))
    ((other, _),) = both(partial(adjoint, inverse(x)), a)
    print(f"{group}: off by {off(got, expected):.0%}; as `Adj` of the inverse, the same values: {same}, ", end="")
    print(f"off by {off(other, expected):.0e}")
    assert same
    assert off(other, expected) < 1e-6
    assert (off(got, expected) < 1e-6) == is_right
    assert is_right or off(got, expected) > 0.3
