"""`ApplyMask` of torchao gives scores the gradient of the masked weight, without the weight: half move the wrong way.

Of a straight-through mask, the gradient of the scores is that of the masked weight times the weight.
"""

import torch
from torchao.sparsity.supermask import ApplyMask, GetSubnet, SupermaskLinear

torch.manual_seed(0)
layer = SupermaskLinear(0.5, 1, False, True, 8, 4).double()
x = torch.randn(16, 8, dtype=torch.float64)
(got,) = torch.autograd.grad(layer(x).square().sum(), layer.scores)


def _plain(layer, x):
    mask = layer.get_mask()  # Straight through: its gradient is that of the scores.
    return torch.nn.functional.linear(x, layer.weight * mask, layer.bias)


assert torch.equal(_plain(layer, x), layer(x))
(right,) = torch.autograd.grad(_plain(layer, x).square().sum(), layer.scores)
cosine = float((got * right).sum() / got.norm() / right.norm())
opposite = int((got.sign() * right.sign() < 0).sum())
print(f"cosine with the straight-through gradient {cosine:.2f}; of {got.numel()} scores, {opposite} get the other sign")
assert torch.equal((got.sign() * right.sign()) < 0, layer.weight < 0)
assert cosine < 0.5

# What it does: choose half of fixed random weights so that the layer computes what another such choice computes.
found = {}
for name, forward in (("torchao", lambda layer, x: layer(x)), ("plain product", _plain)):
    torch.manual_seed(1)
    teacher, student = (SupermaskLinear(0.5, 1, False, True, 32, 8) for _ in range(2))
    student.load_state_dict({**teacher.state_dict(), "scores": student.scores.detach()})
    optimizer, losses = torch.optim.Adam([student.scores], 0.01), []
    for _ in range(500):
        inputs = torch.randn(64, 32)
        loss = (forward(student, inputs) - teacher(inputs).detach()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    found[name] = losses[0], sum(losses[-50:]) / 50
    print(f"{name}: the loss goes from {losses[0]:.3f} to {found[name][1]:.3f}")
assert found["plain product"][1] < found["plain product"][0] / 5
assert found["torchao"][1] > found["torchao"][0] / 2

# The weight, too, gets an unmasked gradient: straight through, as the docstring says.
weight = torch.randn(4, 4, requires_grad=True)
(got,) = torch.autograd.grad(ApplyMask.apply(weight, torch.zeros(4, 4)).sum(), weight)
assert torch.equal(got, torch.ones(4, 4))

# `GetSubnet` refuses scores that are not contiguous; the layer makes them contiguous.
scores = torch.randn(3, 4)
assert layer.scores.is_contiguous()
GetSubnet.apply(scores, torch.zeros(3, 4), torch.ones(3, 4), 0.5)
try:
    GetSubnet.apply(scores.T, torch.zeros(4, 3), torch.ones(4, 3), 0.5)
except RuntimeError as error:
    print(f"GetSubnet of transposed scores: {str(error)[:70]}")
else:
    raise AssertionError
