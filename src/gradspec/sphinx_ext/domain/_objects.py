"""The linkable objects of the domain, one entry each, and the index that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sphinx.domains import Index, IndexEntry

from gradspec.spec._kinds import kinds

if TYPE_CHECKING:
    from sphinx.domains import Domain


@dataclass(frozen=True, kw_only=True)
class Object:
    """Something that a page shows: its kind has the same name in objects.inv and as a role."""

    #: The heading above its kind in the index.
    title: str
    #: What is in brackets behind its name in the general index; nothing where it has an entry of its own.
    label: str = ""
    #: Roles that link to it, beside the one of its own name.
    roles: tuple[str, ...] = ()


#: Roles that link to a spec of only one kind.
SPEC_ROLES = tuple(kind.name for kind in kinds())

OBJECTS: Mapping[str, Object] = {
    "spec": Object(title="Specs", roles=SPEC_ROLES),
    "law": Object(title="Laws", label="law"),
    "matrix": Object(title="Matrices of specs and laws", label="matrix of specs and laws"),
    "differences": Object(title="Differences", label="differences"),
    "peer": Object(title="Published implementations", label="published implementation"),
    "record": Object(title="Figures and audits", label="record"),
    "benchmark": Object(title="Benchmarks", label="benchmark"),
    "kill-matrix": Object(title="Kill matrices", label="kill matrix"),
}


class ObjectIndex(Index):
    """Specs by kind, then laws and what records show."""

    name = "objects"
    localname = "Index of specs, laws and records"
    shortname = "specs"

    if TYPE_CHECKING:
        domain: Domain

    def generate(self, docnames: Iterable[str] | None = None) -> tuple[list[tuple[str, list[IndexEntry]]], bool]:
        """Return the entries under the title of their kind."""
        chosen = None if docnames is None else set(docnames)
        groups: dict[str, list[IndexEntry]] = {}
        for kind, shown in OBJECTS.items():
            places: Mapping[str, Any] = self.domain.data[kind]
            for name, (docname, anchor) in sorted(places.items()):
                if chosen is None or docname in chosen:
                    title = self._title(shown.title, kind, name)
                    groups.setdefault(title, []).append(IndexEntry(name, 0, docname, anchor, "", "", ""))
        # Sphinx makes an id of each title, and an id has no space.
        return [(title.replace(" ", "\N{NO-BREAK SPACE}"), entries) for title, entries in groups.items()], False

    def _title(self, title: str, kind: str, name: str) -> str:
        """Return the title of an object; for a spec it names the kind, if a record does."""
        records = getattr(self.domain, "records", None)
        known = kind == "spec" and records is not None and records.of_spec(name) is not None
        return f"{title}: {records.kind_of(name)}" if known and records is not None else title
