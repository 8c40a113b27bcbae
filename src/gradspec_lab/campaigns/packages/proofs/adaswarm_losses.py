"""Losses of adaswarm: a pull toward the best of a swarm, as documented; `BCELoss` ignores what it is scaled by, too."""

import random

import torch
from differences import drawn

from gradspec_lab.campaigns.packages.absent import absent

absent("torchvision", "skimage", "pandas")
import adaswarm.nn  # noqa: E402
import adaswarm.swarm_loss  # noqa: E402

target = torch.eye(3, dtype=torch.float64)
output = drawn(3, 3).sigmoid().detach().requires_grad_()


def _gradient(loss, scale):
    random.seed(0)
    torch.manual_seed(0)
    return torch.autograd.grad(scale * loss(output, target), output)[0]


for name, loss in (
    ("BCELoss", adaswarm.nn.BCELoss()),
    ("SwarmLoss", adaswarm.nn.SwarmLoss(lambda p, y: (p - y).square(), per_sample=True)),
    ("plain", torch.nn.functional.binary_cross_entropy),
):
    one, tenth = _gradient(loss, 1.0), _gradient(loss, 0.1)
    print(f"{name}: of a tenth of the loss, the gradient is {float(tenth.norm() / one.norm()):.2f} of that of the loss")
    assert torch.allclose(tenth, one if name == "BCELoss" else one / 10)

torch.manual_seed(0)
best = adaswarm.swarm_loss._swarm_best(
    target,
    lambda p, y: (p - y).square(),
    swarm_size=20,
    iterations=40,
    span=6.0,
    inertia=0.7,
    c_1=1.5,
    c_2=1.5,
    per_sample=True,
    generator=None,
    device=torch.device("cpu"),
)
torch.manual_seed(0)
loss = adaswarm.nn.SwarmLoss(lambda p, y: (p - y).square(), per_sample=True)
(got,) = torch.autograd.grad(loss(output, target), output)
assert torch.allclose(got, (output - best) / 3)
assert "Set the gradient w.r.t. the model output to ``(output - gbest)``" in " ".join(
    adaswarm.swarm_loss.__doc__.split()
)
print("SwarmLoss: (output - gbest) / n, as its module says, for a swarm that is drawn anew in each call")
