"""Inverse transforms of pytorch_wavelets give the details no gradient where the coarse part asks for none."""

import torch
from pytorch_wavelets import DWT1DInverse, DWTInverse

for inverse, low, high in (
    (DWT1DInverse(wave="db2", mode="zero"), (1, 2, 5), (1, 2, 5)),
    (DWTInverse(wave="db2", mode="zero"), (1, 2, 5, 5), (1, 2, 3, 5, 5)),
):
    results = {}
    for is_asked in (True, False):
        torch.manual_seed(0)
        coarse, details = torch.randn(low).requires_grad_(is_asked), torch.randn(high, requires_grad=True)
        y = inverse((coarse, [details]))
        (results[is_asked],) = torch.autograd.grad((torch.randn_like(y) * y).sum(), details, allow_unused=True)
    print(
        f"{type(inverse).__name__}: of norm {results[True].norm():.2f} beside a coarse part that asks for a gradient, ",
        end="",
    )
    print(f"and {results[False]} beside one that does not")
    assert results[True].norm() > 1
    assert results[False] is None
