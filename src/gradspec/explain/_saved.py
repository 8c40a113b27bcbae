"""Whether a gradient is right once another tensor stands in for one that forward keeps for backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from gradspec._place import calling_line
from gradspec.explain._wrong import Wrong, some
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import gradients, outputs
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind

#: Of how many saved tensors it is asked, and how many results of forward are tried.
_MOST, _RESULTS = 8, 64


def of_a_saved_tensor(wrong: Wrong) -> Reason | None:
    """Whether it is right once one saved tensor is replaced by an argument, by an output, or by its own transpose."""
    kept, given = _called(wrong, lambda place, t: t)
    if not given:
        return None
    for place, (tensor, name) in enumerate(kept[:_MOST]):
        for other, theirs in _candidates(wrong, tensor):
            found = quietly(lambda place=place, other=other: _with(wrong, place, other))  # type: ignore[misc]
            if found is not None and wrong.same(found, wrong.expected):
                return _said(wrong.name, place, name, theirs)
    return None


def of_a_value_of_forward(wrong: Wrong) -> Reason | None:
    """Whether it is right once one saved tensor is replaced by something that forward computes on its way."""
    kept, given = _called(wrong, lambda place, t: t)
    if not given:
        return None
    with _Results() as results:
        wrong.trial.spec.function(*wrong.inputs.args(wrong.inputs.leaves()))
    for place, (tensor, name) in enumerate(kept[:_MOST]):
        for value, made in results.found:
            if (value.shape, value.dtype) != (tensor.shape, tensor.dtype) or torch.equal(value, tensor):
                continue
            found = quietly(lambda place=place, value=value: _with(wrong, place, value))  # type: ignore[misc]
            if found is not None and wrong.same(found, wrong.expected):
                return _said(wrong.name, place, name, made)
    return None


class _Results(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """While it is entered, what operations of torch return is kept, each with its line in the code under test."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[Tensor, str]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and len(self.found) < _RESULTS and (line := calling_line()):
            self.found.append((result.clone(), f"the result of `{func.overloadpacket.__name__}` ({line})"))
        return result


def _said(argument: str, place: int, name: str, theirs: str) -> Reason:
    what = f"saved tensor {place}" + (f" ({name})" if name else "")
    if theirs:
        said = f"right once {theirs} stands in for {what} in the gradient of `{argument}`"
        return Reason(kind="wrong saved tensor", words=said, evidence={"place": place, "is": name, "right": theirs})
    said = f"right once {what} is transposed in the gradient of `{argument}`: a transpose is missing"
    return Reason(kind="transposed saved tensor", words=said, evidence={"place": place, "is": name})


def _candidates(wrong: Wrong, kept: Tensor) -> Iterator[tuple[Tensor, str]]:
    for name, value in wrong.values.items():
        if value.shape == kept.shape and not torch.equal(value, kept):
            yield value, name
    if kept.ndim > 1 and kept.shape[-1] == kept.shape[-2] and not torch.equal(kept, kept.mT):
        yield kept.mT, ""


def _with(wrong: Wrong, place: int, other: Tensor) -> Tensor:
    """Return the gradient where one of the saved tensors is another one."""
    with wrong.bounded():
        _, given = _called(wrong, lambda k, t: other if k == place else t)
    return some(given[wrong.name])


def _called(
    wrong: Wrong, replaced: Callable[[int, Tensor], Tensor]
) -> tuple[list[tuple[Tensor, str]], dict[str, Tensor | None]]:
    """Return what forward keeps, each with its name, and the gradients; none where torch wrote the backward."""
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> tuple[int, Tensor]:
        kept.append(tensor)
        return len(kept) - 1, tensor

    leaves = wrong.inputs.leaves()
    with saved_tensors_hooks(pack, lambda packed: replaced(*packed)):
        y = wrong.trial.spec.function(*wrong.inputs.args(leaves))
    if not classes_behind(y):
        return [], {}
    given = gradients(outputs(y), leaves, tuple(t.clone() for t in wrong.v))
    return [(t.detach(), _name_of(wrong, t.detach())) for t in kept], given


def _name_of(wrong: Wrong, kept: Tensor) -> str:
    """Return the argument or the output that a saved tensor is, or is but for being rounded."""
    alike = {name: value for name, value in wrong.values.items() if value.shape == kept.shape}
    if (name := next((name for name, value in alike.items() if torch.equal(value, kept)), "")) or not alike:
        return name
    for dtype, (name, value) in product((torch.float32, torch.bfloat16, torch.float16), alike.items()):
        if torch.equal(value.to(dtype).to(value.dtype), kept.to(value.dtype)):
            return f"{name}, rounded to {str(dtype).removeprefix('torch.')}"
    return ""
