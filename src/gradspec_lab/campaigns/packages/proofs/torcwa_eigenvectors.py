"""`Eig` of torcwa leaves out that eigenvectors have length 1: wrong by itself, without effect where a scale cancels."""

import torch
import torcwa
from differences import both, drawn, off
from torcwa.torch_eig import Eig

matrix = drawn(4, 4)
for name, function in (
    ("eigenvalues", lambda m: torch.view_as_real(Eig.apply(m.to(torch.complex128))[0] ** 2).sum(-1).square()),
    ("|eigenvectors|^2", lambda m: Eig.apply(m.to(torch.complex128))[1].abs().square()),
    ("the same of torch.linalg.eig", lambda m: torch.linalg.eig(m.to(torch.complex128))[1].abs().square()),
    ("V f(L) V^-1, where their scale cancels", lambda m: _of_both(m.to(torch.complex128))),
):

    def _of_both(m):
        values, vectors = Eig.apply(m)
        return torch.view_as_real(vectors @ torch.diag(torch.exp(values)) @ torch.linalg.inv(vectors))[..., 0]

    ((got, expected),) = both(function, matrix)
    print(f"{name}: off by {off(got, expected):.0e}")
    assert (off(got, expected) > 0.1) == (name == "|eigenvectors|^2")

geometry = torcwa.rcwa_geo
geometry.Lx = geometry.Ly = 300.0
geometry.nx, geometry.ny = 24, 24
geometry.edge_sharpness = 10.0
geometry.device, geometry.dtype = torch.device("cpu"), torch.float64
geometry.grid()


def _reflected(given):
    pillar = geometry.rectangle(Wx=140 * given[0], Wy=100.0, Cx=150.0, Cy=150.0)
    options = {"order": [1, 1], "L": [300.0, 300.0], "dtype": torch.complex128, "device": torch.device("cpu")}
    simulation = torcwa.rcwa(freq=1 / 532.0, **options)
    simulation.add_input_layer(eps=1.46**2)
    simulation.set_incident_angle(inc_ang=0.2, azi_ang=0.0)
    simulation.add_layer(thickness=200 * given[1], eps=pillar * 4.0 + (1 - pillar))
    simulation.solve_global_smatrix()
    port = {"direction": "forward", "port": "transmission", "polarization": "xx", "ref_order": [0, 0]}
    return 1 - simulation.S_parameters(orders=[0, 0], **port).abs().square()


((got, expected),) = both(_reflected, torch.ones(2, dtype=torch.float64, requires_grad=True))
print(f"the light that a pillar lets not through, by width and height: off by {off(got, expected):.0e}")
assert off(got, expected) < 1e-5
