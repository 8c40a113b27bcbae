r"""The output has a row for each input, of the declared shape, whatever the batch.

Why it matters: a wrong number of rows gives a loss that broadcasts silently, or an error far from the cause.

What breaks it: `view(-1, C)` after a pool of a fixed size, which makes rows out of the pixels of a larger image.

Remedy: average over all pixels, and flatten with `torch.flatten(h, 1)`.
"""

from __future__ import annotations

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, ModuleTrial, broken, not_applicable
from gradspec.laws.module.support._build import batch, build, inputs, rows


def _check(trial: ModuleTrial) -> Finding:
    if trial.case.output is None:
        return not_applicable("the case declares no output of a row for each input")
    module, given = build(trial, training=False), inputs(trial)
    for count in range(1, batch(given) + 1):
        y = module(*rows(given, slice(count)))
        expected = (count, *trial.case.output)
        if not isinstance(y, Tensor) or tuple(y.shape) != expected:
            return broken(
                f"a batch of {count} gives an output of another shape",
                got=str(tuple(y.shape)) if isinstance(y, Tensor) else type(y).__name__,
                expected=str(expected),
                likely="a view(-1, C) makes rows out of pixels",
            )
    return HOLDS


BATCH_SIZE = Law(
    name="batch_size",
    family="modules",
    statement=r"|F(x)| = |x|",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
)
