"""`sig_coef` of pysiglib overwrites the gradient it is given: wrong with `prefixes=True` where a sum shares it."""

import pysiglib.torch_api as sl
import torch
from differences import both, off

torch.manual_seed(0)
words = [(0, 1), (1, 0, 1)]
path = (torch.randn(2, 5, 2, dtype=torch.float64).cumsum(1) / 3).requires_grad_()
found = {}
for prefixes in (True, False):
    for name, function in (
        ("alone", lambda x, p=prefixes: sl.sig_coef(x, words, prefixes=p)),
        (
            "plus another",
            lambda x, p=prefixes: sl.sig_coef(x, words, prefixes=p) + sl.sig_coef(2 * x, words, prefixes=p),
        ),
    ):
        ((got, expected),) = both(function, path)
        found[prefixes, name] = off(got, expected)
print({f"prefixes={p}, {name}": f"off by {value:.0e}" for (p, name), value in found.items()})
assert found[True, "plus another"] > 0.02
assert max(value for (p, name), value in found.items() if not p or name == "alone") < 1e-6
y = sl.sig_coef(path, words, prefixes=True)
cotangent = torch.randn_like(y)
repeated = [torch.autograd.grad(y, path, cotangent, retain_graph=True)[0].norm().item() for _ in range(3)]
print(f"the norm of the gradient, asked thrice with one tensor: {', '.join(f'{one:.3f}' for one in repeated)}")
assert repeated[2] > 1.01 * repeated[0]
