"""Spline coefficients of torch-interpol: backward is forward, for a filter that is not symmetric with mirrored ends.

`SplineCoeff` returns a list of gradients, so torch refuses every backward pass of it.
"""

import torch
from differences import both, drawn, off
from interpol import grid_pull, identity_grid, spline_coeff, spline_coeff_nd


def _matrix(function, size):
    return torch.stack([function(row) for row in torch.eye(size, dtype=torch.float64)], 1)


for bound in ("dct2", "dft", "dct1", "zero"):
    for order in (2, 3):
        options = {"bound": bound, "interpolation": order}
        ((got, expected),) = both(lambda x, o=options: spline_coeff_nd(x, dim=1, **o), drawn(3, 6))
        matrix = _matrix(lambda x, o=options: spline_coeff_nd(x, dim=1, **o), 6)
        unsymmetric = float((matrix - matrix.T).norm() / matrix.norm())
        print(
            f"{bound}, order {order}: off by {off(got, expected):.2f}; the filter is unsymmetric by {unsymmetric:.2f}"
        )
        assert (off(got, expected) > 0.1) == (unsymmetric > 0.1) == (bound in ("dct1", "zero"))

# A user meets it by `prefilter`, with the bound that is the default.
grid = (identity_grid((6, 5), dtype=torch.float64) + 0.3)[None]
((got, expected),) = both(lambda x: grid_pull(x, grid, interpolation=3, prefilter=True), drawn(1, 1, 6, 5))
turned = float((got * expected).sum() / got.norm() / expected.norm())
print(f"grid_pull(..., interpolation=3, prefilter=True): off by {off(got, expected):.2f}, cosine {turned:.2f}")
assert off(got, expected) > 0.1

x, said = drawn(3, 6), ""
try:
    spline_coeff(x, interpolation=3, bound="dct2").sum().backward()
except RuntimeError as error:
    said = str(error)
print(f"spline_coeff: {said}")
assert "incorrect number of gradients (expected 5, got 1)" in said
