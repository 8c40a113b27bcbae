"""The kinds of spec: what a frontend must know to find, verify and show one. Another kind is another entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradspec.spec._base import Spec
from gradspec.spec._function import FunctionSpec
from gradspec.spec._module import ModuleSpec
from gradspec.spec._sheet import common_sheet, function_sheet, module_sheet, text_sheet
from gradspec.spec._text import TextMaker, TextSpec


def tensors(seed: int, device: str) -> Any:
    """Return what makes tensors; torch is imported here, for a record is read and shown without it."""
    from gradspec.spec._maker import Maker

    return Maker(seed, device)


def texts(seed: int, device: str) -> Any:
    """Return what makes text Variables; there is nothing to draw."""
    return TextMaker()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of thing that a spec can be about."""

    #: As in `Law.kinds`, in a sheet, and in the name of the directive that renders a page.
    name: str
    #: The class of its specs.
    spec: type[Spec]
    #: The tuple by which a Python module lists its specs of this kind.
    listed: str
    #: Where our own stand.
    home: str
    #: What the page of such a spec shows beside what every page shows.
    sheet: Callable[[Any], dict[str, Any]]
    #: From a seed and a device to what makes the arguments of a case.
    maker: Callable[[int, str], Any]


KINDS = (
    Kind(
        name="function",
        spec=FunctionSpec,
        listed="FUNCTIONS",
        home="gradspec.functions",
        sheet=function_sheet,
        maker=tensors,
    ),
    Kind(name="module", spec=ModuleSpec, listed="MODULES", home="gradspec.nn", sheet=module_sheet, maker=tensors),
    Kind(
        name="text",
        spec=TextSpec,
        listed="TEXTS",
        home="gradspec.text",
        sheet=text_sheet,
        maker=texts,
    ),
)


def kind_of(name: str) -> Kind:
    """Return the kind of a name.

    Raises:
        ValueError: there is no such kind.
    """
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise ValueError(f"no kind {name!r}: the kinds are {', '.join(kind.name for kind in KINDS)}")


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
        path: where it stands, as `gradspec check` takes it, for example `gradspec.functions:GRAD_FACTOR`.
    """
    return {**common_sheet(spec, path), **kind_of(spec.kind).sheet(spec)}
