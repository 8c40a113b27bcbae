"""Where the tensors of a call are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec.profile import Profile
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


def where(profile: Profile, function: Any, cases: Sequence[Any]) -> str:
    """Return the device on which a function is audited: that of the tensors of its calls, if it is a CUDA device.

    Args:
        profile: which says where the tensors of a call are that is written as text.
        function: what is audited; a module has tensors of its own.
        cases: its calls, and texts.
    """
    from gradspec._audit._case_syntax import read_case

    own = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    kept = [read_case(case) if isinstance(case, str) and case.strip().startswith("@") else case for case in cases]
    calls = [(case.args, dict(case.kwargs)) if isinstance(case, Case) else case for case in kept]
    tensors = [t for t in (*own, *tree_leaves(calls)) if isinstance(t, Tensor)]
    return next((str(t.device) for t in tensors if t.is_cuda), profile.device)
