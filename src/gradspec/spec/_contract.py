"""Check the argument descriptions of a spec against its own cases and wrong calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradspec.spec._base import Argument, Case, Misuse, Spec
from gradspec.spec._invocation import bound
from gradspec.spec._words import (
    OF_THE_MODULE,
    Limit,
    dtype_of,
    has_dtype,
    has_shape,
    is_tensor,
    limits,
    named_in,
    wanted,
)


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A call of the spec: its values by the names of the arguments, and the sizes that have a name."""

    name: str
    values: Mapping[str, Any]
    sizes: Mapping[str, int]
    #: The arguments whose shape is not the one that is said.
    misshapen: tuple[Argument, ...]

    @classmethod
    def of(cls, spec: Spec, case: Case, said: Sequence[Argument], call: Callable[..., Any] | None = None) -> _Call:
        values = dict(bound(inspect.signature(call), case.args, case.kwargs) if call else spec.named(case))
        # The arguments of a constructor are sizes too.
        sizes = {name: v for name, v in values.items() if isinstance(v, int) and not isinstance(v, bool)}
        tensors = [argument for argument in said if argument.shape and is_tensor(values.get(argument.name))]
        misshapen = [a for a in tensors if not has_shape(values[a.name], a.shape, values, sizes)]
        return cls(name=case.name, values=values, sizes=sizes, misshapen=tuple(misshapen))


def contract_faults(spec: Spec, cases: Sequence[Case], misuses: Sequence[Misuse]) -> Iterator[str]:
    """Yield, a sentence each, what the arguments of a spec are said to be and its calls are not.

    A shape, a dtype and a range must be those of every case; a size of one name is one size in all arguments of a case.
    What is said must also be shown: a case for each dtype and for each end of a range, and, where the spec has wrong
    calls at all, one with another dtype and one beyond each end.
    """
    said = [argument for argument in spec.described_arguments if argument.shape or argument.dtype or argument.range]
    known = {argument.name for argument in spec.described_arguments}
    for argument in said:
        for other in (*named_in(argument.shape), *named_in(argument.dtype)):
            if other not in known:
                yield f"{argument.name} is said to be as {other}, which is not an argument"
    shown = [_Call.of(spec, case, said) for case in cases]
    wrong = [_Call.of(spec, misuse.case, said, misuse.call) for misuse in misuses] if spec.raises else None
    for call in shown:
        yield from (f"case {call.name!r}: {fault}" for fault in _contradicted(call, said))
    for argument in said:
        yield from _unshown_dtypes(argument, shown, wrong)
        for limit in limits(argument.name, argument.range):
            yield from _unshown_end(argument, limit, shown, wrong)


def _contradicted(call: _Call, said: Sequence[Argument]) -> Iterator[str]:
    for argument in call.misshapen:
        got = tuple(call.values[argument.name].shape)
        yield f"{argument.name} has the shape {got}, and is said to have {argument.shape}"
    for argument in said:
        value = call.values.get(argument.name)
        if argument.dtype and is_tensor(value) and not has_dtype(value, argument.dtype, call.values):
            yield f"{argument.name} has the dtype {dtype_of(value)}, and is said to have {argument.dtype}"
        for limit in limits(argument.name, argument.range):
            if any(not is_within for is_within, _ in _looked_at(argument, limit, call)):
                yield f"{argument.name} is not within {argument.range}"


def _unshown_dtypes(argument: Argument, shown: Sequence[_Call], wrong: Sequence[_Call] | None) -> Iterator[str]:
    name, said = argument.name, f"{argument.name} is said to have the dtype {argument.dtype}"
    found = {dtype_of(call.values.get(name)) for call in shown} - {""}
    if not argument.dtype or not found:
        return
    for dtype in wanted(argument.dtype):
        if dtype not in found:
            yield f"{said}, and has {dtype} in no case: add one"
    if wrong is None or argument.dtype in ("any", OF_THE_MODULE):
        return
    given = [(call.values[name], call.values) for call in wrong if is_tensor(call.values.get(name))]
    if all(has_dtype(value, argument.dtype, values) for value, values in given):
        yield f"{said}, and no wrong call gives another one: add one"


def _unshown_end(
    argument: Argument, limit: Limit, shown: Sequence[_Call], wrong: Sequence[_Call] | None
) -> Iterator[str]:
    said, end = f"{argument.name} is said to be in {argument.range}", f"{limit.sign} {limit.bound}"
    found = [is_at_end for call in shown for _, is_at_end in _looked_at(argument, limit, call)]
    if not any(found) and any(is_at_end is not None for is_at_end in found):
        yield f"{said}, and no case is at the end `{end}`: add one"
    is_refused = any(not is_within for call in wrong or () for is_within, _ in _looked_at(argument, limit, call))
    if limit.is_checked and wrong is not None and not is_refused:
        yield f"{said}, and no wrong call is beyond `{end}`: add one, or write ', not checked'"


def _looked_at(argument: Argument, limit: Limit, call: _Call) -> Iterator[tuple[bool, bool | None]]:
    """Yield of the lowest and the highest number of a value whether it is within a limit, and whether it is its end.

    The latter is None at an open end of real numbers, where there is no last one.
    """
    value: Any = call.values.get(argument.name)
    bound = limit.number(call.sizes)
    if bound is None:
        return
    if is_tensor(value):
        if limit.place is not None:
            value = value[limit.place : limit.place + 1]
        if not value.numel() or "complex" in dtype_of(value):
            return
        numbers, is_whole = [value.min().item(), value.max().item()], "int" in dtype_of(value)
    elif isinstance(value, int | float):
        numbers, is_whole = [value], isinstance(value, int)
    else:
        return
    end = limit.end(bound, is_whole=is_whole)
    for number in numbers:
        yield limit.allows(number, bound), None if end is None else number == end
