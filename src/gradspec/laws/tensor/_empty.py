r"""A zero-size input gives a zero-size gradient and no error.

Why it matters: the last batch of an epoch, an image without a detection, an expert without a token.

What breaks it: a reduction over nothing, a reshape with -1, a kernel launched over no block.

Remedy: return early for a zero-size input.
"""

from __future__ import annotations

from gradspec.law import Finding, Law, Trial
from gradspec.laws.tensor.support._edge import judge_edge


def _check(trial: Trial) -> Finding:
    return judge_edge(trial, lambda t: t.numel() == 0, "no zero-size input in this case")


EMPTY = Law(
    name="empty",
    family="inputs",
    statement=r"|x| = 0 \Rightarrow |\bar{x}| = 0",
    check=_check,
    doc=__doc__ or "",
)
