"""The data that the sections of a page may read."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from docutils import nodes

from gradspec.law import Verdict
from gradspec.report import kind_of_sheet
from gradspec.spec._kinds import kind_of
from gradspec.sphinx_ext.domain._records import Record, Records
from gradspec.sphinx_ext.page._nodes import paragraph


@dataclass(frozen=True, kw_only=True)
class View:
    """One spec, its record, and the records of others."""

    name: str
    record: Record
    records: Records
    full_names: Mapping[str, str]
    #: What the docstring of the documented class says before its first section, on a page that shows it.
    described: tuple[nodes.Node, ...] = ()
    #: What goes in and what comes out, as that docstring says it.
    shape: str = ""

    @property
    def sheet(self) -> Mapping[str, Any]:
        """The spec as plain data."""
        return self.record.report.sheets[self.name]

    @property
    def kind(self) -> str:
        """What the spec is about: "function"."""
        return kind_of_sheet(self.sheet)

    @property
    def target(self) -> str:
        """The qualified name of the documented class or function, or else of what is called, if it can be imported."""
        documents = self.sheet["documented"]
        return str(documents[0]) if documents else self.sheet.get("called") or self.name

    @property
    def call(self) -> str:
        """How a call is written: "GradFactor.apply", "ShakeBlock"."""
        short = self.target.rpartition(".")[2]
        return f"{short}.apply" if self.is_class and kind_of(self.kind).applied else short

    @property
    def is_class(self) -> bool:
        """Whether the documented object is a class; a record says so, and the page needs no import."""
        return bool(self.sheet.get("is_class"))  # one that is older does not

    @property
    def lead(self) -> nodes.paragraph:
        """The first words of the page: those of the docstring, or the summary of the spec."""
        first = self.described[0] if self.described else None
        return first if isinstance(first, nodes.paragraph) else paragraph(self.sheet["summary"])

    def verdicts(self, law: str) -> tuple[Verdict, ...]:
        """Return what a law says of the spec."""
        return self.record.report.of(spec=self.name, law=law)


def load(qualified: str) -> Any:
    """Return the object of a qualified name, imported.

    Raises:
        ImportError: no part of the name is a module, or the module has no such attribute.
    """
    parts = qualified.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:cut])
        try:
            found: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            continue
        try:
            for part in parts[cut:]:
                found = getattr(found, part)
        except AttributeError as error:
            raise ImportError(str(error)) from None
        return found
    raise ImportError(f"no module in {qualified!r}")
