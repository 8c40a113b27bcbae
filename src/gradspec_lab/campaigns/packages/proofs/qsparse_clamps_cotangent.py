"""The quantizers of qsparse clamp the cotangent, in place, to the range of the values that they quantize.

A straight-through gradient passes the cotangent where the value is in range, and drops it elsewhere. Here backward asks
of the cotangent instead: a gradient that is larger than the range is cut, whatever the value is.
"""

import torch
from qsparse.quantize import quantize_with_decimal, quantize_with_scaler

x = torch.tensor([0.2, 0.3, 0.9], requires_grad=True)
for function, options in (
    (quantize_with_scaler, {"bits": 4, "scaler": 0.1}),
    (quantize_with_decimal, {"bits": 8, "decimal": 5}),
):
    for scale in (0.1, 1.0, 10.0, 1000.0):
        given = torch.full((3,), scale)
        (got,) = torch.autograd.grad(function(x, **options), x, given)
        print(f"{function.__name__}: of {scale} backward passes {got.tolist()}")
    assert got.max() < 10
    assert torch.equal(given, got), "the cotangent itself was written to"

layer, target = torch.nn.Linear(1, 1, bias=False), torch.tensor([[50.0]])
torch.nn.init.constant_(layer.weight, 0.5)
out = layer(torch.ones(1, 1))
right = torch.autograd.grad((out - target).square().sum(), layer.weight)[0]
got = torch.autograd.grad(
    (quantize_with_scaler(layer(torch.ones(1, 1)), bits=4, scaler=0.1) - target).square().sum(), layer.weight
)[0]
print(f"a squared error of 50: the weight gets {got.item():.2f}, straight through it is {right.item():.2f}")
assert abs(got.item()) < 1 < abs(right.item())
