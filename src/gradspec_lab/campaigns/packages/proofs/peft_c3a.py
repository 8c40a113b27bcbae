"""C3A: with blocks of three or more, `x` gets the gradient of another product, and with blocks of two the right one."""

import torch
from differences import both, drawn, off
from peft.tuners.c3a.utils import BlockCircularConvolution


def _formula(x, w):
    blocks, size = w.shape[1:]
    x = x.reshape(-1, blocks, size)
    terms = [torch.einsum("tnb,mn->tmb", x.roll(-shift, 2), w[:, :, shift]) for shift in range(size)]
    return sum(terms).flatten(1)


for size in (2, 3, 4):
    x, w = drawn(2, 2 * size), drawn(3, 2, size, seed=1)
    ours, theirs = both(_formula, x, w), both(BlockCircularConvolution.apply, x, w)
    same = torch.equal(_formula(x, w).round(decimals=9), BlockCircularConvolution.apply(x, w).round(decimals=9))
    print(
        f"blocks of {size}: x off by {off(*theirs[0]):.2f} of the true gradient, w by {off(*theirs[1]):.0e}; "
        f"forward the same: {same}"
    )
    assert off(*theirs[1]) < 1e-6
    assert (off(*theirs[0]) > 0.1) == (size > 2)
    assert max(off(*pair) for pair in ours) < 1e-6
