"""The Radon transform of deepinv has the inverse one for its adjoint, as documented; least squares are right."""

import torch
from differences import both, drawn, off

from gradspec_lab.campaigns.packages.absent import absent

absent("torchvision", "torchmetrics", "matplotlib", "h5py", "PIL", "natsort", "requests")
deepinv = __import__("deepinv")
double = {"dtype": torch.float64}
found = {}
for by_backward in (False, True):
    options = {"adjoint_via_backprop": by_backward, "normalize": False}
    radon = deepinv.physics.Tomography(angles=4, img_width=8, **options, dtype=torch.float64)
    ((got, expected),) = both(radon.A, drawn(1, 1, 8, 8))
    found[by_backward] = off(got, expected)
print(f"Radon: off by {found[False]:.2f}; with adjoint_via_backprop=True by {found[True]:.0e}")
assert found[True] < 1e-6 < 0.05 < found[False]
assert "small adjoint mismatch" in " ".join(deepinv.physics.Tomography.__doc__.split())
torch.manual_seed(0)
blur = deepinv.physics.BlurFFT(img_size=(1, 4, 4), filter=torch.rand(1, 1, 3, 3)).to(torch.float64)
solve = deepinv.optim.linear.least_squares_implicit_backward
given = drawn(1, 1, 4, 4, seed=1), drawn(1, 1, 4, 4, seed=2), torch.tensor(0.5, **double, requires_grad=True)
pairs = both(lambda y, z, gamma: solve(blur, y, z=z, gamma=gamma, tol=1e-12, max_iter=500), *given)
print(f"least squares, to a tolerance of 1e-12: off by {', '.join(f'{off(*pair):.0e}' for pair in pairs)}")
assert max(off(*pair) for pair in pairs) < 1e-5
