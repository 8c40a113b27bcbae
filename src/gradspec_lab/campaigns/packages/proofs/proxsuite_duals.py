"""`QPFunction` of proxsuite: gradients of the solution and of equality multipliers are right, those of `nus` are not.

Where the constraints have other scales than 1, the cotangent of `nus` is scaled once for each constraint, in a loop.
"""

import sys
import sysconfig

import torch
from differences import both, drawn, off

sys.path.insert(0, sysconfig.get_path("purelib") + "/cmeel.prefix/lib/python3.11/site-packages")
from proxsuite.torch.qplayer import QPFunction

root = drawn(4, 4, seed=5).detach()
q = (root @ root.T + torch.eye(4)).requires_grad_()
p, g, a, b = (
    drawn(2, 4),
    drawn(5, 4, seed=1),
    drawn(1, 4, seed=2),
    (0.1 * torch.ones(1, dtype=torch.float64)).requires_grad_(),
)
high = (0.3 * torch.ones(5, dtype=torch.float64)).requires_grad_()
low = (-high).detach().requires_grad_()
arguments, names = (q, p, a, b, g, low, high), ["Q", "p", "A", "b", "G", "l", "u"]
solve = QPFunction(eps=1e-9, maxIter=1000, structural_feasibility=True)
active = (solve(*arguments)[2].abs() > 1e-6).double()
print(f"{int(active.sum())} of {active.numel()} constraints are active")
assert 0 < active.sum() < active.numel()
for number, output in enumerate(("zhats", "lams", "nus")):
    pairs = both(lambda q, *rest, n=number: solve((q + q.T) / 2, *rest)[n] * (active if n == 2 else 1), *arguments)
    found = {name: off(got.double(), expected) for name, (got, expected) in zip(names, pairs, strict=True)}
    print(f"{output}: off by", {name: round(value, 4) for name, value in found.items()})
    assert (max(found.values()) < 1e-2) == (output != "nus")

# Of one active constraint g x <= u in min |x|^2 / 2 - c x, the multiplier is (c g - u) / |g|^2, so d/du is -1 / |g|^2.
c, none = torch.tensor([[2.0, 0.0]], dtype=torch.float64), (torch.zeros(0, 2).double(), torch.zeros(0).double())
active, others, found = [1.0, 0.2], [[0.0, 0.5], [0.3, 0.1], [0.1, 0.1]], []
for place in range(4):
    rows = torch.tensor([*others[:place], active, *others[place:]], dtype=torch.float64)
    u = torch.ones(1, 4, dtype=torch.float64, requires_grad=True)
    _, _, nus = solve(torch.eye(2, dtype=torch.float64), -c, *none, rows, (u - 9).detach(), u)
    found.append(float(torch.autograd.grad(nus[0, place], u)[0][0, place]))
    print(f"active row {place}: nus {nus[0, place].item():.4f}, d/du {found[-1]:.4f}, and should be {-1 / 1.04:.4f}")
assert abs(found[0] * 1.04 + 1) < 1e-3
assert max(abs(one * 1.04 + 1) for one in found) > 0.1
