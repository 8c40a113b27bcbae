r"""Under `fully_shard` (FSDP2) each of two ranks gets the gradients of one process on the whole batch.

It checks the same as the law `ddp`, with each child that has parameters sharded, then the module. It runs only for a
spec that names it in `ModuleSpec.data_parallel`.

Why it matters: models that do not fit one device are trained this way; a parameter is whole only while its module is
called.

What breaks it: a parameter that is read outside the call of the module that holds it, a copy of one that is made in the
constructor, and what breaks `ddp`.

Remedy: call the child module instead of a function with its weight.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from gradspec._scope import Scope
from gradspec.law import Finding, Law, ModuleTrial
from gradspec.laws.module.support._data_parallel import judge_ranks
from gradspec.laws.tensor.support._ranks import RANKS


def _check(trial: ModuleTrial) -> Finding:
    return judge_ranks(trial, "fsdp2", _sharded)


def _sharded(module: nn.Module) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    parameters = list(module.parameters())
    mesh: Any = init_device_mesh(parameters[0].device.type, (RANKS,))
    for child in module.children():
        # A list of modules has no call of its own, in which its parameters would be whole.
        if any(True for _ in child.parameters()) and not isinstance(child, nn.ModuleList | nn.ModuleDict):
            fully_shard(child, mesh=mesh)
    fully_shard(module, mesh=mesh)
    return module


FSDP2 = Law(
    name="fsdp2",
    family="modules",
    scope=Scope.DISTRIBUTED,
    statement=r"\tfrac{1}{2} (\nabla_{\theta_r} L(x_1) + \nabla_{\theta_r} L(x_2)) = \nabla_{\theta_r} L(x)",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    cost="process",
    alone=True,
)
