"""A kind of spec: everything that the engine, the commands and the pages need to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradspec.spec._base import Spec


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of thing that a spec can be about: all that the engine, the commands and the pages must know of it."""

    #: As in `Law.kinds`, in a sheet, and in the names of the directive that makes a page and of the role of a link.
    name: str
    #: What is above the specs of this kind.
    title: str
    #: The class of its specs.
    spec: type[Spec]
    #: The tuple by which a Python module lists its specs of this kind.
    listed: str
    #: The module that lists the specs of this kind which `gradspec check` takes without a target; empty: none does.
    home: str = ""
    #: From a spec to what its page shows beside what every page shows: plain data, which a record keeps.
    sheet: Callable[[Any], dict[str, Any]]
    #: From a seed and a device to what makes the arguments of a case.
    maker: Callable[[int, str], Any]
    #: The sections of its page, in order, before those that every page has: names of `gradspec.sphinx_ext`'s sections.
    sections: tuple[str, ...] = ("arguments",)
    #: Whether a page shows the docstring of the documented class, up to its first section.
    described: bool = False
    #: Whether a documented class is called by its `apply`.
    applied: bool = False
