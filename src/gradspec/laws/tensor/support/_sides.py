"""Whether what a spec promises can be held against a function: asked only where a law is about to be broken."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, SpecFaultError, differentiable, outputs
from gradspec.laws.tensor.support._dense import is_sparse
from gradspec.laws.tensor.support._reference import is_audited, is_stand_in, on_spec_side
from gradspec.laws.tensor.support._replay import is_asleep, is_replayed, replayed


def fault_of_spec(trial: Trial) -> str:
    """Return in words why a spec cannot be judged, as by its primal or its surrogate, whatever the function does."""
    try:
        values = Inputs.of(trial).values
        if sparse := [name for name in trial.spec.wrt if is_sparse(values.get(name))]:
            said = "is sparse, and no law judges the gradient of a sparse tensor: specify the function of its values"
            return f"`{sparse[0]}` {said}"
        if is_audited(trial.spec):  # a reference that was given beside the function
            return _fault(trial, repeats=False).replace(" of the spec", "")
        return _fault(trial)
    except SpecFaultError as error:
        return str(error)
    except Exception:  # of an argument that the function under test does not take either
        return ""


def _fault(trial: Trial, *, repeats: bool = True) -> str:
    trial = replayed(trial) if is_replayed(trial) and not is_asleep(trial) else trial
    spec, inputs, found = trial.spec, Inputs.of(trial), dict[str, tuple[Any, ...]]()
    for role, side in {"primal": spec.primal, "surrogate": spec.surrogate}.items():
        if is_stand_in(side):
            return ""
        first = outputs(on_spec_side(role, side, *inputs.args()))
        again = outputs(on_spec_side(role, side, *inputs.args())) if repeats else first
        if len(first) != len(again) or not all(map(_agree, first, again)):
            return f"the {role} of the spec returns something else each time it is called with the same arguments"
        found[role] = first
    primal, surrogate = found["primal"], found["surrogate"]
    if len(primal) != len(surrogate):
        return f"the primal of the spec has {_count(primal)}, the surrogate {_count(surrogate)}"
    for place, (p, s) in enumerate(zip(primal, surrogate, strict=True)):
        if differentiable(p) and p.shape != s.shape:
            shapes = f"{tuple(p.shape)}, that of the surrogate {tuple(s.shape)}"
            return f"output {place} of the primal of the spec has the shape {shapes}"
        if differentiable(p) and differentiable(s) and torch.promote_types(p.dtype, s.dtype) != s.dtype:
            dtypes = f"{p.dtype}, that of the surrogate {s.dtype}"
            return f"output {place} of the primal of the spec has the dtype {dtypes}"
    return ""


def _count(values: tuple[Any, ...]) -> str:
    return f"{len(values)} output{'s' * (len(values) != 1)}"


def _agree(one: Tensor, other: Tensor) -> bool:
    """Whether two results are one, but for the order in which a device adds up."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not differentiable(one):
        return torch.equal(one, other)
    size = one.detach().abs().nan_to_num(0, 0, 0).max().item() if one.numel() else 0.0
    return torch.allclose(one, other, rtol=1e-3, atol=1e-3 * size, equal_nan=True)
