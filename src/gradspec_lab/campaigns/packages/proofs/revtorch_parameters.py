"""`ReversibleSequence` of revtorch writes to the `.grad` of its parameters by itself, whatever was asked for.

After a plain backward pass these are right. But torch does not see the parameters: a call that asks only for the
gradient of the input adds to them, too, and one that asks for theirs gets none.
"""

import revtorch
import torch

torch.manual_seed(0)
blocks = [revtorch.ReversibleBlock(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)) for _ in range(2)]
model = revtorch.ReversibleSequence(torch.nn.ModuleList(blocks)).double()
parameters = list(model.parameters())
x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)


def _plain(x):
    for block in blocks:
        x1, x2 = x.chunk(2, 1)
        x1 = x1 + block.f_block(x2)
        x = torch.cat([x1, x2 + block.g_block(x1)], 1)
    return x


right = torch.autograd.grad(_plain(x).square().sum(), [x, *parameters])
model(x).square().sum().backward()
assert all(torch.allclose(g, p.grad) for g, p in zip(right, [x, *parameters], strict=True))
torch.autograd.grad(model(x).square().sum(), x)
twice = max(float((p.grad - 2 * g).abs().max()) for g, p in zip(right[1:], parameters, strict=True))
print(f"after torch.autograd.grad(loss, x) the parameters' gradients are doubled, to {twice:.0e}")
assert twice < 1e-9
nothing = torch.autograd.grad(model(x).square().sum(), parameters, allow_unused=True)
print(f"torch.autograd.grad(loss, parameters) gives {sum(g is None for g in nothing)} times None, of {len(nothing)}")
assert all(g is None for g in nothing)
assert ".grad" not in (revtorch.ReversibleSequence.__doc__ or "")
