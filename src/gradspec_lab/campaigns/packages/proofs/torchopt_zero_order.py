"""`zero_order` of TorchOpt estimates a gradient by draws, as it documents. By the method "forward" it is wrong.

There each difference is taken from the difference before it, and multiplied by sigma where the others divide.
"""

import torch
from differences import off
from torchopt.diff.zero_order import zero_order

weights = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
right = 2 * weights.detach()
found = {}
for method in ("naive", "forward", "antithetic"):
    for sigma in (0.5, 0.1):
        torch.manual_seed(0)
        loss = zero_order(
            distribution=lambda shape: torch.randn(shape, dtype=torch.float64),
            method=method,
            argnums=0,
            num_samples=10000,
            sigma=sigma,
        )(lambda params, x: (params[0] * x).square().sum())
        (got,) = torch.autograd.grad(loss((weights,), torch.ones(3, dtype=torch.float64)), weights)
        found[method, sigma] = off(got, right)
        print(
            f"{method}, sigma {sigma}: {[round(g, 3) for g in got.tolist()]}, and the true gradient is {right.tolist()}"
        )

# The forward difference, averaged over the same draws.
torch.manual_seed(0)
noise = torch.randn(10000, 3, dtype=torch.float64)
change = (weights.detach() + 0.1 * noise).square().sum(1) - weights.detach().square().sum()
plain = (change[:, None] * noise).mean(0) / 0.1
print(f"forward differences in plain torch, sigma 0.1: {[round(g, 3) for g in plain.tolist()]}")
assert off(plain, right) < 0.1
assert found["antithetic", 0.1] < 0.1
assert found["antithetic", 0.5] < 0.1
assert found["naive", 0.5] < 0.3
assert found["forward", 0.5] > 0.5
assert found["forward", 0.1] > 0.9
