"""`log` of torchlie is right along rotations and motions, which are all it is given; off the group it was moved.

Of `log(exp(a) @ y)` the gradient of the vector `a` is compared with central differences.
"""

import torch
import torchlie.functional as lie
from differences import both, drawn, off

torch.manual_seed(0)
for name, group, size in (("SO3", lie.SO3, 3), ("SE3", lie.SE3, 6)):
    y = group.exp(0.4 * torch.randn(2, size, dtype=torch.float64))
    ((got, expected),) = both(
        lambda a, group=group, y=y: group.log(group.compose(group.exp(a), y)), drawn(2, size, scale=0.4)
    )
    print(f"{name}: off by {off(got, expected):.0e}")
    assert off(got, expected) < 1e-6
