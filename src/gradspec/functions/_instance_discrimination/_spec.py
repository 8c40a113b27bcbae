"""The spec of the instance-discrimination loss."""

from __future__ import annotations

from gradspec.functions._instance_discrimination import _cases
from gradspec.functions._instance_discrimination._function import (
    InstanceDiscriminationLoss,
    bank_loss,
    instance_discrimination_loss,
)
from gradspec.functions._linear_cross_entropy._log_sum_exp import merge_by_log_sum_exp
from gradspec.spec import FunctionSpec, Placements, Saved, Supports

INSTANCE_DISCRIMINATION_LOSS = FunctionSpec(
    name="instance_discrimination_loss",
    function=InstanceDiscriminationLoss.apply,
    primal=bank_loss,
    surrogate=bank_loss,
    wrt=("x",),
    cases=_cases.cases,
    raises=_cases.misuses,
    arguments=_cases.ARGUMENTS,
    documented=(InstanceDiscriminationLoss, instance_discrimination_loss, merge_by_log_sum_exp),
    saved=Saved(
        text="the gradient, of the shape of `x`",
        bytes=lambda x, y, memory, temperature: x.numel() * x.element_size(),
    ),
    placements=(
        Placements(
            arguments={"memory": "shard(0)"},
            output="plain",
            call=lambda x, y, memory, temperature: instance_discrimination_loss(
                x, y, memory, temperature, reduction="none"
            ),
        ),
    ),
    references=(_cases.WU_2018, _cases.FLASH_2022),
    supports=Supports.all(),
)
