"""Why a result of strided tensors is wrong: the function is called with other numbers, and other strides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.law import Finding
from gradspec.laws.tensor.support._compare import Results, is_one
from gradspec.laws.tensor.support._diagnosis import quietly

#: What torch says of a view that the strides do not allow.
REFUSED = "view size is not compatible"

#: The arguments of a call.
Tensors = Mapping[str, Any]
#: Returns a tensor of the same numbers in other strides.
LayOut = Callable[[Tensor], Tensor]


def in_order(t: Tensor) -> Tensor:
    """Return the numbers of a tensor as they lie in memory, from where it begins: what a kernel without strides reads.

    Raises:
        RuntimeError: the memory has fewer numbers than the tensor, as that of an expanded one.
    """
    strides = torch.empty(t.shape, device="meta").stride()
    return t.detach().as_strided(t.shape, strides, t.storage_offset()).clone()


def readings_of(values: Tensors) -> Iterator[Tensors]:
    """Yield the tensors as a kernel without strides reads them: all of them, and each of them by itself."""
    strided = {n: v for n, v in values.items() if has_strides(v)}
    for names in (list(strided), *([name] for name in strided)):
        yield {**values, **{name: in_order(strided[name]) for name in names}}


def contiguous_of(values: Tensors) -> Tensors:
    """Return the same numbers without strides."""
    return {n: v.contiguous() if has_strides(v) else v for n, v in values.items()}


def with_cause_of_strides(
    finding: Finding,
    expected: Results,
    strided: Callable[[], Results],
    contiguous: Callable[[], Results],
    readings: Callable[[], Iterable[Results]],
    *,
    memory: str,
    asked: str,
) -> Finding:
    """Return a finding with its cause; as it is where the same numbers are not right once they are contiguous.

    Args:
        finding: that what the function gives of strided tensors is not what is expected.
        expected: what is right.
        strided: calls the function with strided tensors.
        contiguous: calls it with the same numbers, contiguous.
        readings: calls it with the numbers in the order of their memory, of any of the tensors.
        memory: what is said where one of the readings gives what the strided tensors gave.
        asked: what is said where none does.
    """

    def shown() -> str:
        got = strided()
        # A call that keeps something gives another result each time, whatever the strides.
        if not is_one(contiguous(), expected, but=got) or not is_one(strided(), got, but=expected):
            return ""
        is_read = quietly(lambda: any(is_one(reading, got, but=expected) for reading in readings()))
        return memory if is_read else asked

    said = quietly(shown)
    return replace(finding, likely=said, reason=None) if said else finding


def has_strides(value: Any) -> bool:
    """Whether a value has strides that torch can change."""
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.is_quantized
