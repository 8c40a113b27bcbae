"""The first state that torchdae returns is the initial one, and its gradient does not come back."""

import torch
from torchdae import solve_bdf1
from torchdae.adjoint_sensitivity import solve_dae_adjoint

rate = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
y0 = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)


def decay(_t, y, yp):
    """The residual of y' = -rate y."""
    return yp + rate * y


ys = solve_dae_adjoint(decay, (0.0, 1.0), y0, 0.1, [rate], solve_bdf1)
assert torch.equal(ys[0], y0)
(got,) = torch.autograd.grad(ys[0].sum(), y0)
print(f"the derivative of the first state by the initial one: {float(got):g}, and is 1")
assert float(got) == 0.0
