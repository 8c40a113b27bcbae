"""The adjoint steps of norse take an Euler step of the adjoint equation, which their docstrings call an adjoint step.

It is not the derivative of the step of forward: without a spike the two differ by what goes to zero with the step.
"""

from itertools import pairwise

import torch
from norse.torch.functional.adjoint import lif_adjoint as adjoint
from norse.torch.functional.lif import LIFFeedForwardState, LIFParameters, LIFState, lif_feed_forward_step, lif_step

PARAMETERS = LIFParameters()
torch.manual_seed(0)
weights, recurrent = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)
x, v, i = (0.1 * torch.rand(2, size, dtype=torch.float64) for size in (4, 3, 3))
still = torch.zeros(2, 3, dtype=torch.float64)
on_v, on_i = torch.randn(2, 2, 3, dtype=torch.float64)


def _gradient(step, dt):
    given = x[:, :3] if "feed_forward" in step.__name__ else x
    given = given.clone().requires_grad_()
    if "feed_forward" in step.__name__:
        spikes, state = step(given, LIFFeedForwardState(v, i), PARAMETERS, dt)
    else:
        spikes, state = step(given, LIFState(still, v, i), weights, recurrent, PARAMETERS, dt)
    assert not spikes.any()
    return torch.autograd.grad((on_v * state.v + on_i * state.i).sum(), given)[0]


for step, plain in (
    (adjoint.lif_adjoint_step, lif_step),
    (adjoint.lif_feed_forward_adjoint_step, lif_feed_forward_step),
):
    apart = []
    for dt in (1e-3, 1e-4, 1e-5):
        right = _gradient(plain, dt)
        apart.append(float((_gradient(step, dt) - right).norm() / right.norm()))
    print(f"{step.__name__}: off by {', '.join(f'{one:.1e}' for one in apart)} for steps of 1e-3, 1e-4, 1e-5")
    assert apart[0] > 0.05
    assert all(before > 8 * after for before, after in pairwise(apart))
    assert "adjoint backward" in step.__doc__
