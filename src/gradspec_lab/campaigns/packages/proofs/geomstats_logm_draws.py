"""`logm` of geomstats draws from numpy's generator, by way of SciPy's estimate of a norm; its gradient is right."""

import os

os.environ["GEOMSTATS_BACKEND"] = "pytorch"
import geomstats.backend as gs
import numpy as np
import torch
from differences import both, drawn, off

x = drawn(3, 3)
((got, expected),) = both(lambda x: gs.linalg.logm(x @ x.mT + torch.eye(3, dtype=torch.float64)), x)
matrix = (x @ x.mT + torch.eye(3, dtype=torch.float64)).detach().requires_grad_()
np.random.seed(0)
before = np.random.get_state()[1].copy(), np.random.get_state()[2]
first = torch.autograd.grad(gs.linalg.logm(matrix).sum(), matrix)[0]
after = np.random.get_state()
has_drawn = not np.array_equal(before[0], after[1]) or before[1] != after[2]
second = torch.autograd.grad(gs.linalg.logm(matrix).sum(), matrix)[0]
print(f"the gradient is off by {off(got, expected):.0e}; numpy's generator has moved: {has_drawn};", end=" ")
print(f"another draw: {off(first, second):.0e}")
assert off(got, expected) < 1e-6
assert has_drawn
assert off(first, second) < 1e-12
