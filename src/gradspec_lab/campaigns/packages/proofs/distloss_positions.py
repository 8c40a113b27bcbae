"""`eff_distloss` gives its positions and intervals no gradient; `eff_distloss_native`, said to be equal, does."""

import torch
from differences import both, drawn, off
from torch_efficient_distloss import eff_distloss, eff_distloss_native

w = torch.softmax(drawn(4, 8), -1).detach().requires_grad_()
edges = torch.rand(4, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64).cumsum(-1)
m, interval = ((edges[:, 1:] + edges[:, :-1]) / 2).requires_grad_(), edges.diff().requires_grad_()
for name, function in (("eff_distloss_native", eff_distloss_native), ("eff_distloss", eff_distloss)):
    found = [off(got, expected) for got, expected in both(function, w, m, interval)]
    print(
        f"{name}: " + ", ".join(f"{of} off by {one:.0e}" for of, one in zip(("w", "m", "interval"), found, strict=True))
    )
    assert max(found if name == "eff_distloss_native" else found[:1]) < 1e-6
assert min(found[1:]) == 1.0
