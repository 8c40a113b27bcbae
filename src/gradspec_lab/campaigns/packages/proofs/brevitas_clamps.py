"""The clamps of brevitas: outside of the bounds the gradient is 1, and the docstring of each says so."""

import torch
from brevitas.ops import autograd_ste_ops as ops
from differences import both, drawn

x = drawn(3, 4)
low, high = torch.tensor(-0.5, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
for function, bounds in (
    (ops.ScalarClampSteFn, (-0.5, 0.5)),
    (ops.ScalarClampMinSteFn, (-0.5,)),
    (ops.TensorClampSteFn, (low, high)),
):
    ((got, expected),) = both(lambda x, f=function, bounds=bounds: f.apply(x, *bounds), x)
    outside = expected.abs() < 1e-6
    print(f"{function.__name__}: a gradient where the output is flat, in {int(outside.sum())} of {x.numel()} places")
    assert outside.any()
    assert got[outside].abs().min() > 1e-3
    assert torch.allclose(got[~outside], expected[~outside], atol=1e-6)
    assert "straight-through" in function.__doc__
