"""`Eig` of meent leaves out that eigenvectors have length 1: wrong by itself, without effect where a scale cancels."""

import meent
import torch
from differences import both, drawn, off
from meent.on_torch.emsolver.primitives import Eig

Eig.perturbation = 0.0  # It keeps degenerate eigenvalues apart, and is no part of the question.
matrix = drawn(4, 4)
for name, function in (
    ("eigenvalues", lambda m: torch.view_as_real(Eig.apply(m)[0] ** 2).sum(-1).square()),
    ("|eigenvectors|^2", lambda m: Eig.apply(m)[1].abs().square()),
    ("the same of torch.linalg.eig", lambda m: torch.linalg.eig(m)[1].abs().square()),
    ("V f(L) V^-1, where their scale cancels", lambda m: _of_both(m)),
):

    def _of_both(m):
        values, vectors = Eig.apply(m)
        return torch.view_as_real(vectors @ torch.diag(torch.exp(values)) @ torch.linalg.inv(vectors))[..., 0]

    ((got, expected),) = both(function, matrix)
    print(f"{name}: off by {off(got, expected):.0e}")
    assert (off(got, expected) > 0.1) == (name == "|eigenvectors|^2")


def _transmitted(pattern):
    solver = meent.call_mee(
        backend=2,
        pol=0,
        n_top=1,
        n_bot=1.5,
        theta=0.1,
        phi=0,
        wavelength=900.0,
        period=[1000.0, 1000.0],
        fto=[2, 0],
        thickness=[300.0],
        ucell=pattern,
        type_complex=torch.complex128,
    )
    return solver.conv_solve().de_ti.flatten()


pattern = (2 + torch.rand(1, 1, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).requires_grad_()
((got, expected),) = both(_transmitted, pattern)
print(f"the diffraction efficiencies of a grating: off by {off(got, expected):.0e}")
assert off(got, expected) < 1e-5
