r"""Each documented misuse raises the documented error, and nothing has changed afterwards.

Why it matters: a wrong call that is accepted gives a model that trains on a wrong gradient, or on none.

What breaks it: a tuple argument, into which autograd does not look; a factor that requires grad and silently gets
none.

Remedy: check the arguments before anything else, and say in the error what to write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gradspec.law import ALL_KINDS, AnyTrial, Finding, Law, Status, broken, not_applicable, shown
from gradspec.laws.tensor.support._memory import first_change, snapshots
from gradspec.spec._invocation import direct


def _check(trial: AnyTrial) -> Finding:
    misuse = trial.misuse
    assert misuse is not None, "verify gives a misuse to a law that runs over misuses"
    if misuse.call and getattr(misuse.call, "__self__", misuse.call) not in trial.spec.documented:
        return not_applicable("it is a call of a documented object, and this implementation documents none")
    attempt = direct(misuse.call, trial.case) if misuse.call else trial.spec.invocation(trial.case)
    call = "".join(f"{name}({_written(args, kwargs)})" for name, args, kwargs in attempt.written)
    # One on the device `meta`, which stands for another device, has no memory that could change.
    values = attempt.values.items()
    tensors = {name: value for name, value in values if isinstance(value, Tensor) and not value.is_meta}
    before, state = snapshots(tensors), attempt.state()
    expected = f"{misuse.error.__name__} that matches {misuse.match!r}"
    try:
        attempt.call()
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
        said = f"the wrong call was refused after {changed.name} had changed: {changed.how}"
        return broken(said, argument=call, **changed.place)
    for name, was in state.items():
        if (now := attempt.state()[name]) != was:
            return broken("the wrong call was refused after a change", argument=name, got=now, expected=was)
    details = {"call": call, "error": misuse.error.__name__, "message": message}
    return Finding(status=Status.HOLDS, details=details)


def _written(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    return ", ".join([*map(_source, args), *(f"{name}={_source(value)}" for name, value in kwargs.items())])


def _source(value: Any) -> str:
    """Return an argument as a reader would type it."""
    if isinstance(value, tuple | list):
        inner = ", ".join(map(_source, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if not isinstance(value, Tensor):
        return repr(value)
    if value.is_meta:
        return f"torch.ones({tuple(value.shape)}, device='meta')"
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
    needs_spec=True,
    kinds=ALL_KINDS,
    over="misuses",
)
