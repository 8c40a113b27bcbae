r"""Each documented misuse raises the documented error, and nothing has changed afterwards.

Why it matters: a wrong call that is accepted gives a model that trains on a wrong gradient, or on none.

What breaks it: a tuple argument, into which autograd does not look; a factor that requires grad and silently gets
none.

Remedy: check the arguments before anything else, and say in the error what to write.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from gradspec.law import Finding, Law, Status, Trial, broken, shown
from gradspec.laws.tensor._memory import first_change, snapshots


def _check(trial: Trial) -> Finding:
    misuse, args, kwargs = trial.misuse, trial.case.args, dict(trial.case.kwargs)
    assert misuse is not None, "verify gives a misuse to a law that runs over misuses"
    name = getattr(trial.spec.function, "__qualname__", trial.spec.name)
    call = f"{name}({', '.join([*map(_source, args), *(f'{k}={_source(v)}' for k, v in kwargs.items())])})"
    tensors = {str(k): t for k, t in enumerate([*args, *kwargs.values()]) if isinstance(t, Tensor)}
    before = snapshots(tensors)
    expected = f"{misuse.error.__name__} that matches {misuse.match!r}"
    try:
        trial.spec.function(*args, **kwargs)
    except Exception as error:
        message = " ".join(str(error).split())
        got = shown(error)
        if not isinstance(error, misuse.error) or not re.search(misuse.match, message, re.DOTALL):
            return broken(
                "the wrong call gets another error than documented", argument=call, got=got, expected=expected
            )
    else:
        return broken("the wrong call is accepted", argument=call, got="no error", expected=expected)
    if changed := first_change(before, tensors):
        return broken(
            f"the wrong call was refused after argument {changed[0]} had changed: {changed[1]}", argument=call
        )
    details = {"call": call, "error": misuse.error.__name__, "message": message}
    return Finding(status=Status.HOLDS, details=details)


def _source(value: Any) -> str:
    """Return an argument as a reader would type it."""
    if isinstance(value, tuple | list):
        inner = ", ".join(map(_source, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if not isinstance(value, Tensor):
        return repr(value)
    numbers = str(value.detach().cpu().resolve_conj().tolist()) if value.numel() <= 6 else ""
    text = f"torch.tensor({numbers})" if numbers else f"torch.ones{tuple(value.shape)}"
    if value.dtype == torch.float64:
        text = text.removesuffix(")") + ", dtype=torch.float64)"
    return text + (".requires_grad_()" if value.requires_grad else "")


WRONG_CALL = Law(
    name="wrong_call",
    family="protocol",
    statement=r"F(\text{misuse}) \Rightarrow \text{error}",
    check=_check,
    doc=__doc__ or "",
    over="misuses",
    specimens=("accepts_a_wrong_call",),
)
