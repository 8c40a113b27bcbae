"""The kinds of spec: what a frontend must know to find, verify and show one. Another kind is another entry here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from gradspec._one_line import one_line
from gradspec.spec._base import Spec
from gradspec.spec._function import FunctionSpec
from gradspec.spec._kind import Kind
from gradspec.spec._module import ModuleSpec
from gradspec.spec._operator import OperatorSpec
from gradspec.spec._sheet import common_sheet, function_sheet, module_sheet, operator_sheet, text_sheet
from gradspec.spec._text import TextMaker, TextSpec


def tensors(seed: int, device: str) -> Any:
    """Return what makes tensors; torch is imported here, for a record is read and shown without it."""
    from gradspec.spec._maker import Maker

    return Maker(seed, device)


def texts(seed: int, device: str) -> Any:
    """Return what makes text Variables; there is nothing to draw."""
    return TextMaker()


#: Ours; a package announces more as entry points `gradspec.kinds`.
KINDS = (
    Kind(
        name="function",
        title="Functions",
        spec=FunctionSpec,
        listed="FUNCTIONS",
        home="gradspec.functions",
        sheet=function_sheet,
        maker=tensors,
        sections=("computes", "arguments"),
        applied=True,
    ),
    Kind(
        name="operator",
        title="Operators",
        spec=OperatorSpec,
        listed="OPERATORS",
        home="gradspec.operators",
        sheet=operator_sheet,
        maker=tensors,
        sections=("described", "arguments", "schema"),
        described=True,
    ),
    Kind(
        name="module",
        title="Modules",
        spec=ModuleSpec,
        listed="MODULES",
        home="gradspec.nn",
        sheet=module_sheet,
        maker=tensors,
        sections=("described", "arguments", "call", "state"),
        described=True,
    ),
    Kind(
        name="text",
        title="Text operations",
        spec=TextSpec,
        listed="TEXTS",
        home="gradspec.text",
        sheet=text_sheet,
        maker=texts,
        sections=("arguments", "comes_out"),
        applied=True,
    ),
)


@cache
def kinds() -> tuple[Kind, ...]:
    """Return our kinds, then those that installed packages announce as entry points `gradspec.kinds`.

    Raises:
        ValueError: an entry point that cannot be loaded or holds no kind, or two kinds of one name.
    """
    found = list(KINDS)
    for entry in entry_points(group="gradspec.kinds"):
        try:
            kind = entry.load()
        except Exception as error:
            raise ValueError(f"entry point {entry.value!r} of gradspec.kinds raised {one_line(error)}") from None
        if not isinstance(kind, Kind):
            raise ValueError(f"entry point {entry.value!r} of gradspec.kinds is a {type(kind).__name__}, not a Kind")
        found.append(kind)
    names = [kind.name for kind in found]
    if twins := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two kinds of spec are called {twins[0]!r}: rename the one that is not gradspec's")
    return tuple(found)


def kind_of(name: str) -> Kind:
    """Return the kind of a name.

    Raises:
        ValueError: there is no such kind.
    """
    for kind in kinds():
        if kind.name == name:
            return kind
    raise ValueError(f"no kind {name!r}: the kinds are {', '.join(kind.name for kind in kinds())}")


def maker_of(name: str) -> Callable[[int, str], Any]:
    """Return what makes the arguments of the cases of a kind, from a seed and a device.

    Raises:
        ValueError: there is no such kind.
    """
    return kind_of(name).maker


def spec_sheet(spec: Spec, path: str = "") -> dict[str, Any]:
    """Return the sheet of a spec of any kind.

    Args:
        spec: the spec.
        path: where it is, as `gradspec check` takes it, for example `gradspec.functions:GRAD_FACTOR`.
    """
    return {**common_sheet(spec, path), **kind_of(spec.kind).sheet(spec)}
