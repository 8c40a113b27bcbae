"""`ReversibleSequence` writes to the `.grad` of its parameters by itself: right after a plain backward pass only.

It is the same class in reformer_pytorch, sinkhorn_transformer and routing_transformer, whichever is installed.
"""

from importlib import import_module, util

import torch

from gradspec_lab.campaigns.packages.absent import bare

PACKAGES = ("reformer_pytorch", "sinkhorn_transformer", "routing_transformer", "linear_attention_transformer")
name = next(name for name in PACKAGES if util.find_spec(name))
bare(name)
reversible = import_module(f"{name}.reversible")
torch.manual_seed(0)


class Block(torch.nn.Linear):
    """A layer as the packages call it."""

    def forward(self, x, **options):
        """Return the result, and beside it a loss where one is asked for."""
        y = torch.tanh(super().forward(x))
        return (y, y.new_zeros(1).requires_grad_()) if name == "routing_transformer" else y


doubles = name != "reformer_pytorch"  # the others double what they are given, and add the halves
pairs = [(Block(2, 2), Block(2, 2)) for _ in range(2)]
model = reversible.ReversibleSequence(torch.nn.ModuleList([torch.nn.ModuleList(pair) for pair in pairs])).double()
parameters = list(model.parameters())
x = torch.randn(3, 2, 2 if doubles else 4, dtype=torch.float64, requires_grad=True)


def _value(found):
    return (found[0] if isinstance(found, tuple) else found).square().sum()


def _plain(x):
    x1, x2 = (x, x) if doubles else x.chunk(2, -1)
    for f, g in pairs:
        x1 = x1 + torch.tanh(torch.nn.functional.linear(x2, f.weight, f.bias))
        x2 = x2 + torch.tanh(torch.nn.functional.linear(x1, g.weight, g.bias))
    return x1 + x2 if doubles else torch.cat([x1, x2], -1)


right = torch.autograd.grad(_value(_plain(x)), [x, *parameters])
_value(model(x)).backward()
first = max(float((p.grad - g).abs().max()) for g, p in zip(right, [x, *parameters], strict=True))
torch.autograd.grad(_value(model(x)), x)
twice = max(float((p.grad - 2 * g).abs().max()) for g, p in zip(right[1:], parameters, strict=True))
nothing = torch.autograd.grad(_value(model(x)), parameters, allow_unused=True)
print(
    f"{name}: after backward() off by {first:.0e}; after torch.autograd.grad(loss, x) doubled, to {twice:.0e};", end=" "
)
print(f"torch.autograd.grad(loss, parameters) gives {sum(g is None for g in nothing)} times None, of {len(nothing)}")
assert first < 1e-9
assert twice < 1e-9
assert all(g is None for g in nothing)
assert ".grad" not in (reversible.ReversibleSequence.__doc__ or "")
