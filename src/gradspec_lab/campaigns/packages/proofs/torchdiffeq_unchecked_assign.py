"""`_UncheckedAssign` of torchdiffeq writes to a tensor past the version counter, as a comment in it says.

The gradient of what it overwrites is not 0. Within a solver step these are places of a new tensor, which nothing else
has read: the gradient of a solution is right.
"""

import inspect
from functools import partial

import torch
from differences import both, drawn, off
from torchdiffeq import odeint
from torchdiffeq._impl.rk_common import _UncheckedAssign

scratch = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
value = drawn(2)
(gradient,) = torch.autograd.grad(_UncheckedAssign.apply(scratch * 1, value, (..., 0)).sum(), scratch)
print(f"the overwritten places get the gradient {gradient[:, 0].tolist()}, and their values do not matter")
assert gradient[:, 0].all()

times = torch.linspace(0, 1, 3, dtype=torch.float64)


def _solved(y, w, *, method, **options):
    return odeint(lambda t, y: torch.tanh(w @ y), y, times, method=method, **options)


for method, options in (("rk4", {}), ("dopri5", {"rtol": 1e-12, "atol": 1e-12})):
    pairs = both(partial(_solved, method=method, **options), drawn(2), drawn(2, 2, seed=1))
    print(f"{method}: the gradients of a solution are off by {max(off(*pair) for pair in pairs):.0e}")
    assert max(off(*pair) for pair in pairs) < 1e-6
assert "sneak past the version checker" in inspect.getsource(_UncheckedAssign)
