r"""Under DistributedDataParallel each of two ranks gets the gradients of one process on the whole batch.

Each rank has half of the batch, and the module is called twice. If a norm takes statistics of the batch, or noise is
drawn, one process takes the halves one after another, and the mean of their gradients is compared. The law starts a
second process, which takes seconds, so it runs only for a spec that names it in `ModuleSpec.data_parallel`.

Why it matters: training on several devices should give the result of one device, only faster.

What breaks it: a gradient that divides by the number of ranks itself, a buffer that each rank writes from its own rows
and that decides the output, a statistic of the batch outside a norm, a parameter that a call does not use.

Remedy: leave the mean over ranks to the wrapper, and reduce statistics of the batch over the ranks.
"""

from __future__ import annotations

from torch import nn

from gradspec._scope import Scope
from gradspec.law import Finding, Law, ModuleTrial
from gradspec.laws.module.support._data_parallel import judge_ranks


def _check(trial: ModuleTrial) -> Finding:
    return judge_ranks(trial, "ddp", nn.parallel.DistributedDataParallel)


DDP = Law(
    name="ddp",
    family="modules",
    scope=Scope.DISTRIBUTED,
    statement=r"\tfrac{1}{2} (\nabla_\theta L(x_1) + \nabla_\theta L(x_2)) = \nabla_\theta L(x)",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    cost="process",
    alone=True,
)
