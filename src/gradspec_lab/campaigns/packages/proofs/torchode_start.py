"""The adjoint of torchode 1.0.1 ends at the first time of evaluation: after the start, its gradients are wrong."""

import torch
import torchode
from differences import both, drawn, off


class Field(torch.nn.Module):
    """A field that depends on the time."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2, dtype=torch.float64)

    def forward(self, t, y):
        """Return how a state moves."""
        return torch.tanh(self.linear(y)) + t[..., None]


torch.manual_seed(0)
term = torchode.ODETerm(Field())
step = torchode.Tsit5(term=term)
control = torchode.IntegralController(atol=1e-9, rtol=1e-9, term=term)
start, end = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
found = {}
for first in (0.0, 0.4):
    times = torch.linspace(first, 1, 4, dtype=torch.float64).expand(3, 4).contiguous()
    for solver in (torchode.BacksolveAdjoint(term, step, control), torchode.AutoDiffAdjoint(step, control)):

        def solved(y0, solver=solver, times=times):
            """Return the states at all times of evaluation."""
            problem = torchode.InitialValueProblem(y0=y0, t_eval=times, t_start=start, t_end=end)
            return solver.solve(problem).ys

        (pair,) = both(solved, drawn(3, 2))
        found[type(solver).__name__, first] = off(*pair)
print({f"{name}, from {first}": f"off by {value:.0e}" for (name, first), value in found.items()})
assert found["BacksolveAdjoint", 0.0] < 1e-4
assert found["AutoDiffAdjoint", 0.4] < 1e-4
assert found["BacksolveAdjoint", 0.4] > 0.1
