"""LoHa of a convolution with `use_effective_conv2d`: `w1a` and `w2a` get gradients that are not those of the weight."""

import torch
from differences import both, drawn, off
from peft.tuners.loha.layer import HadaWeightCP

names = ("t1", "w1a", "w1b", "t2", "w2a", "w2b")
sizes = ((2, 2, 3, 3), (2, 8), (2, 4), (2, 2, 3, 3), (2, 8), (2, 4))
values = [drawn(*size, seed=seed) for seed, size in enumerate(sizes)]
scale = torch.ones((), dtype=torch.float64)
pairs = both(lambda *values: HadaWeightCP.apply(*values, scale), *values)


def _formula(t1, w1a, w1b, t2, w2a, w2b):
    rebuilt = (torch.einsum("ijkl,jr,ip->prkl", t, b, a) for t, a, b in ((t1, w1a, w1b), (t2, w2a, w2b)))
    return next(rebuilt) * next(rebuilt)


of_formula = both(_formula, *values)
for name, (got, expected), (right, _) in zip(names, pairs, of_formula, strict=True):
    print(
        f"{name}: off by {off(got, expected):.2f} of the true gradient; "
        f"autograd of the same formula by {off(right, expected):.0e}"
    )
    assert off(right, expected) < 1e-6
    assert (off(got, expected) > 0.5) == (name in ("w1a", "w2a"))
