r"""A 0-d input gives a 0-d output and a 0-d gradient.

Why it matters: losses and temperatures are 0-d; indexing them is an error, and a result of shape [1] changes every
shape after it.

What breaks it: `x.shape[0]`, `x.sum(dim=0)`, a result that is wrapped into shape [1].

Remedy: write for any rank, or refuse a 0-d input with a clear error.
"""

from __future__ import annotations

from gradspec.law import Finding, Law, Trial
from gradspec.laws.tensor.support._edge import judge_edge


def _check(trial: Trial) -> Finding:
    return judge_edge(trial, lambda t: t.ndim == 0, "no 0-d input in this case")


SCALAR = Law(
    name="scalar",
    family="inputs",
    statement=r"x \in \mathbb{R} \Rightarrow \bar{x} \in \mathbb{R}",
    check=_check,
    requires=("primal", "vjp"),
    doc=__doc__ or "",
)
