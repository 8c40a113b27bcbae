"""`InplaceTensorClampSteFn` writes to its argument, by its name, and is straight-through, by its docstring."""

import torch
from brevitas.ops.autograd_ste_ops import InplaceTensorClampSteFn

leaf = torch.tensor([-2.0, 0.1, 3.0], dtype=torch.float64, requires_grad=True)
x = leaf * 1
before = x.detach().clone()
y = InplaceTensorClampSteFn.apply(x, torch.tensor(-0.5), torch.tensor(0.5))
(gradient,) = torch.autograd.grad(y.sum(), leaf)
print(f"the argument was {before.tolist()} and is {x.detach().tolist()}; the gradient is {gradient.tolist()}")
assert not torch.equal(x, before)
assert torch.equal(gradient, torch.ones(3, dtype=torch.float64))
assert "straight-through" in InplaceTensorClampSteFn.__doc__
