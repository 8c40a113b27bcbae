"""The domain `gradspec`: what the pages show, by kind and name, and the records that they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from sphinx import addnodes
from sphinx.domains import Domain, Index, ObjType
from sphinx.roles import XRefRole
from sphinx.util.nodes import make_refnode

from gradspec.sphinx_ext._config import options
from gradspec.sphinx_ext._warnings import GradspecWarning, warn
from gradspec.sphinx_ext.domain._objects import OBJECTS, SPEC_ROLES, ObjectIndex
from gradspec.sphinx_ext.domain._records import Records, read_records

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment


NAME = "gradspec"
#: How many laws without a page a warning names.
_NAMED = 3


class GradspecDomain(Domain):
    """The documented specs and laws, and what else is shown, by name."""

    name = NAME
    label = "gradspec"
    object_types: ClassVar[dict[str, ObjType]] = {
        kind: ObjType(kind, kind, *shown.roles) for kind, shown in OBJECTS.items()
    }
    roles: ClassVar[dict[str, Any]] = {role: XRefRole(warn_dangling=True) for role in (*OBJECTS, *SPEC_ROLES)}
    indices: ClassVar[list[type[Index]]] = [ObjectIndex]
    #: kind -> name -> (page, anchor); and what was found in the last build, so that it need not be looked for again.
    initial_data: ClassVar[dict[str, Any]] = {**{kind: {} for kind in object_types}, "patterns": {}}
    data_version = 4

    def __init__(self, env: BuildEnvironment) -> None:
        super().__init__(env)
        #: Read again for each build, and never pickled.
        self.records = Records()

    def note(self, kind: str, name: str, anchor: str) -> None:
        """Note that the current page shows a spec, a law or another object."""
        self.data[kind][name] = (self.env.current_document.docname, anchor)

    def note_pattern(self, pattern: Path, found: list[Path]) -> None:
        """Note that the current page shows the files of a pattern: it is read again where there is another one."""
        noted = self.data["patterns"].setdefault(self.env.current_document.docname, {})
        noted[str(pattern)] = [str(path) for path in found]

    @property
    def outgrown(self) -> list[str]:
        """The pages that show the files of a pattern which today finds others."""
        return [
            docname
            for docname, noted in self.data["patterns"].items()
            if any(
                found != [str(path) for path in sorted(Path(pattern).parent.glob(Path(pattern).name))]
                for pattern, found in noted.items()
            )
        ]

    def clear_doc(self, docname: str) -> None:
        """Forget what a page documented."""
        self.data["patterns"].pop(docname, None)
        for kind in self.object_types:
            self.data[kind] = {name: place for name, place in self.data[kind].items() if place[0] != docname}

    def merge_domaindata(self, docnames: Set[str], otherdata: dict[str, Any]) -> None:
        """Take over what another process read."""
        for kind in self.object_types:
            self.data[kind].update({name: p for name, p in otherdata[kind].items() if p[0] in docnames})
        others = otherdata["patterns"]
        self.data["patterns"].update({docname: noted for docname, noted in others.items() if docname in docnames})

    def get_objects(self) -> Iterable[tuple[str, str, str, str, str, int]]:
        """Yield what the search and objects.inv list."""
        for kind in self.object_types:
            for name, (docname, anchor) in self.data[kind].items():
                yield name, name, kind, docname, anchor, 1

    def resolve_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: addnodes.pending_xref,
        contnode: nodes.Element,
    ) -> nodes.reference | None:
        """Link to where an object is shown."""
        kind = "spec" if typ in SPEC_ROLES else typ
        if target not in self.data[kind] or (typ in SPEC_ROLES and self.records.kind_of(target) != typ):
            return None
        docname, anchor = self.data[kind][target]
        return make_refnode(builder, fromdocname, docname, anchor, contnode)

    def resolve_any_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        target: str,
        node: addnodes.pending_xref,
        contnode: nodes.Element,
    ) -> list[tuple[str, nodes.reference]]:
        """Nothing: a law's name is too common a word for the role `any`."""
        return []

    @property
    def undocumented(self) -> list[str]:
        """A sentence about each spec of this build that has no page, and one about the laws, once one of them has."""
        records, known = self.records, self.data["spec"]
        specs = [
            f"{records.kind_of(name)} {name!r} is in the record of this build and on no page: "
            f"write one with the directive gradspec-{records.kind_of(name)}:: {name}"
            for name in records.specs
            if name not in known
        ]
        laws = [repr(name) for name in records.laws if self.data["law"] and name not in self.data["law"]]
        if not laws:
            return specs
        named = ", ".join(laws[:_NAMED]) + (f" and {len(laws) - _NAMED} more" if len(laws) > _NAMED else "")
        return [
            *specs,
            f"{'law' if len(laws) == 1 else 'laws'} {named} {'is' if len(laws) == 1 else 'are'} in the record of this "
            'build and on no page: gradspec_law_pages = "laws" in conf.py writes one for each law',
        ]

    def check_consistency(self) -> None:
        """Warn about everything measured that no page shows."""
        for what in self.undocumented:
            warn(GradspecWarning.UNDOCUMENTED, what)


def setup(app: Sphinx) -> None:
    """Register the domain, and read the records before any page."""
    app.add_domain(GradspecDomain)
    app.connect("builder-inited", _read)
    app.connect("env-get-outdated", _outdated)


def domain_of(env: BuildEnvironment) -> GradspecDomain:
    """Return the domain of a build."""
    domain = env.domains[NAME]
    assert isinstance(domain, GradspecDomain)
    return domain


def _read(app: Sphinx) -> None:
    domain = domain_of(app.env)
    chosen = options(app.config)
    folder = Path(app.confdir) if app.confdir is not None else Path.cwd()
    paths = tuple(chosen.records), tuple(chosen.committed_records)
    domain.records = read_records(folder, *paths)
    for error in domain.records.errors:
        warn(GradspecWarning.RECORD, error)


def _outdated(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    # Sphinx checks consistency only where something was read: an incremental build must go on warning.
    root = [app.config.root_doc] if domain_of(env).undocumented else []
    return [docname for docname in (*root, *domain_of(env).outgrown) if docname in env.all_docs]
