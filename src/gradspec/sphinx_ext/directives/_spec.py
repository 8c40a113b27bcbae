"""The directives `gradspec-function`, `gradspec-module`, `gradspec-text` and so on: the page of one spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from gradspec.findings import Bar
from gradspec.law import Rank
from gradspec.spec._kinds import kind_of
from gradspec.sphinx_ext._config import options
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.autodoc._autodoc import SHOWN
from gradspec.sphinx_ext.autodoc._docstring import as_autodoc, description, parsed, remainder, shape
from gradspec.sphinx_ext.autodoc._inherited import inherited
from gradspec.sphinx_ext.domain._domain import GradspecDomain, domain_of
from gradspec.sphinx_ext.domain._page import note_object, records_for_page
from gradspec.sphinx_ext.page import _semantics
from gradspec.sphinx_ext.page._divergence import divergences
from gradspec.sphinx_ext.page._evidence import is_shown
from gradspec.sphinx_ext.page._nodes import paragraph
from gradspec.sphinx_ext.page._order import OF_SPEC
from gradspec.sphinx_ext.page._pages import AFTER, DIFFERENCES, MEMBERS, Page, page_of
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec.sphinx_ext.page._view import View, load

if TYPE_CHECKING:
    from docutils.parsers.rst.states import RSTState

from gradspec.law import Status


class SpecDirective(SphinxDirective):
    """Render the page of a spec of the kind that the directive is named after.

    The content, usually autodoc directives, becomes the section on members. With `no-index`, another page is the one
    that links and the index lead to; with `inherited-members`, what the class has from torch is listed, too.
    """

    has_content = True
    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], object]]] = {
        "no-index": directives.flag,
        "inherited-members": directives.flag,
    }
    state: RSTState

    def run(self) -> list[nodes.Node]:
        """Return the nodes, and warn where the record disagrees."""
        domain, records = domain_of(self.env), records_for_page(self.env)
        name = self.arguments[0].strip()
        record = records.of_spec(name)
        if record is None or records.kind_of(name) != self.kind:
            return self._without_record(name)
        full_names = options(self.config).annotations
        view = View(name=name, record=record, records=records, full_names=full_names)
        documented = self._documented(view)
        if self.page.described and documented is not None:
            words = tuple(parsed(self, description(documented)))
            view = replace(view, described=words, shape=shape(documented))
        for file in record.files.get(f"spec {name}", ()):
            self.env.note_dependency(file)
        found = list(divergences(view, Bar(fail_on=Rank(options(self.config).fail_on))))
        for kind, message in found:
            warn_each_build(self, kind, message)
        head = self._head(view, domain)
        sections = [self._section(view.name, title, make(view)) for title, make in self.page.before]
        members = self._members(view, documented)
        self._show_rest(view, documented, head, members)
        sections.append(self._section(view.name, MEMBERS, members))
        sections += [self._section(view.name, title, make(view)) for title, make in AFTER]
        shown = [section for section in sections if section is not None]
        return [*head, *(node for section in shown for node in self._noted(view.name, section))]

    @property
    def kind(self) -> str:
        """The kind of the spec: "module" in `gradspec-module`."""
        return self.name.removeprefix("gradspec-")

    @property
    def page(self) -> Page:
        """The sections of the page of such a spec."""
        return page_of(kind_of(self.kind))

    def _without_record(self, name: str) -> list[nodes.Node]:
        records = domain_of(self.env).records
        held = ", ".join(spec for spec in records.specs if records.kind_of(spec) == self.kind)
        there = [spec for spec in records.specs if name in (spec, records.sheet(spec)["path"])]
        words = (
            f"no record of this build holds the {self.kind} {name!r} (it holds: {held or 'nothing'}): "
            "make one with `gradspec check TARGET --record PATH`, PATH being in gradspec_records"
        )
        if there:  # under another directive or by its path
            words = f"write gradspec-{records.kind_of(there[0])}:: {there[0]} for {name!r}"
        warn_each_build(self, GradspecWarning.UNKNOWN, words)
        unknown = paragraph(nodes.literal("", name), ": ", badge(Status.NOT_MEASURED), ".")
        return [nodes.admonition("", nodes.title("", "Not measured"), unknown), *self.parse_content_to_nodes()]

    def _head(self, view: View, domain: GradspecDomain) -> list[nodes.Node]:
        described = _semantics.signature(view)
        signature = described[0]
        assert isinstance(signature, addnodes.desc_signature)
        # A page whose title is the name of the spec has the id already.
        anchor = f"spec-{view.target}" if view.target in self.state.document.ids else view.target
        signature["ids"] = [anchor]
        self.state.document.note_explicit_target(signature)
        if "no-index" in self.options:
            return [described]
        kind = "class" if view.is_class else "function"
        self.env.domains.python_domain.note_object(view.target, kind, anchor, location=signature)
        domain.note("spec", view.name, anchor)
        module, _, name = view.target.rpartition(".")
        where = f"{kind} in {module}" if module else kind
        index = addnodes.index(entries=[("single", f"{name} ({where})", anchor, "", None)])
        return [index, described]

    def _documented(self, view: View) -> Any:
        """Return the object that the page is about; None if there is none, or an import failed."""
        named = view.sheet["documented"]
        if not named and view.target == view.name:  # the name of the spec, as of an operator, is nothing to import
            return None
        # Not above: in Sphinx 9 this hides the function `sphinx.ext.autodoc.mock` from whoever imports it later.
        from sphinx.ext.autodoc.mock import ismock, mock  # type: ignore[attr-defined]

        try:
            with mock(self.config.autodoc_mock_imports):  # as autodoc imports it, whichever comes first
                found = load(view.target)
                return None if ismock(found) else found  # a mock says what it is, and nothing of the object
        except Exception as error:  # an import runs the project's code, which may raise anything
            if not named:  # nobody said that this build can import it
                return None
            warn_each_build(
                self, GradspecWarning.IMPORT, f"{view.target} cannot be imported: {type(error).__name__}: {error}"
            )
            return None

    def _members(self, view: View, documented: Any) -> list[nodes.Node]:
        self.env.current_document[SHOWN] = [verdict.case for verdict in view.verdicts("examples") if is_shown(verdict)]
        own = self.parse_content_to_nodes()
        self.env.current_document[SHOWN] = []
        if "inherited-members" not in self.options or not isinstance(documented, type):
            return own
        return [*own, *inherited(documented, view.target, self.env.domains.python_domain)]

    def _show_rest(self, view: View, documented: Any, head: list[nodes.Node], members: list[nodes.Node]) -> None:
        """Show below the signature what the docstring says and no other part of the page does."""
        if documented is None:
            return
        sheet = view.sheet
        has = {
            "arguments": sheet["arguments"],
            "examples": any(is_shown(verdict) for verdict in view.verdicts("examples") if verdict.case == view.target),
            "formula": sheet.get("tex") or sheet.get("stated"),
            "references": sheet["references"],
            "shape": view.shape,
        }
        shown = description(documented) if self.page.described else sheet["summary"]
        rest = remainder(documented, shown, [name for name, said in has.items() if said])
        said = _flat(members)
        content = next(head[-1].findall(addnodes.desc_content))
        content += [node for node in as_autodoc(self, documented, view.target, rest) if _flat([node]) not in said]

    def _noted(self, spec: str, section: nodes.section) -> list[nodes.Node]:
        if "no-index" in self.options or section["ids"][0] != nodes.make_id(f"{spec}-{DIFFERENCES}"):
            return [section]
        return [note_object(self, "differences", spec, section), section]

    def _section(self, spec: str, title: str, content: Iterable[nodes.Node]) -> nodes.section | None:
        children = list(content)
        if not children:
            return None
        section = nodes.section("", nodes.title(title, title), *children)
        section[OF_SPEC] = title
        section["ids"].append(nodes.make_id(f"{spec}-{title}"))
        self.state.document.set_id(section)
        return section


def _flat(shown: Iterable[nodes.Node]) -> str:
    """Return the words of some nodes on one line."""
    return " ".join(" ".join(node.astext() for node in shown).split())
