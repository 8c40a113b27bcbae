"""Where the tensors of a call are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from gradspec.spec import Case


def on_device(case: Case, device: str) -> Case:
    """Return a case with its tensors on a device, with their strides; one that is given twice stays one."""
    from gradspec.laws.tensor.support._call import fresh  # with it come all laws

    moved: dict[int, Tensor] = {}

    def move(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.device == torch.device(device):
            return value
        if id(value) not in moved:
            there = fresh(value, device=device) if value.layout == torch.strided else value.detach().to(device)
            moved[id(value)] = there.requires_grad_(value.requires_grad)
        return moved[id(value)]

    args, kwargs = tree_map(move, (case.args, dict(case.kwargs)))
    return Case(name=case.name, args=args, kwargs=kwargs)
