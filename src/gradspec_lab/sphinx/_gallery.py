"""The directive `gradspec-gallery`: what was measured of published functions, the most dangerous first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec._record import read
from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._addresses import is_linked
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._page import note_object
from gradspec.sphinx_ext.page._fold import folded
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import code, paragraph, span
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab.audits.gallery import gallery

#: The ranks of a record, the most dangerous first: a title, and what the reader must know to judge fairly.
RANKS = {
    "training": ("Wrong in plain training", "Nothing is raised, and a training loop goes on with the wrong number."),
    "second": (
        "Wrong only in a second derivative",
        "A gradient penalty, a Hessian or a meta-gradient through the function is wrong, and nothing is raised.",
    ),
    "dtype": (
        "Right in float32, and another dtype elsewhere",
        "Who trains in float64 or bfloat16 gets float32 back, or a gradient that torch converts silently.",
    ),
    "transforms": (
        "Another result only under torch.compile or torch.export",
        "It is not the function's own doing: this torch does so to any function of this form, a sound one too. Each "
        "works in eager mode.",
    ),
    "": ("Nothing silent found", "What these functions cannot do, they refuse with an error."),
}
#: How many functions are in a rank goes before it.
COUNTED = (
    "wrong in plain training",
    "in a second derivative only",
    "in another dtype only",
    "only when compiled or exported",
    "with nothing that goes wrong silently",
)


class GalleryDirective(SphinxDirective):
    """Render a section for each rank; the argument is the path of the record, or of the truth about the functions."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the sections, or that nothing was measured."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        self.env.note_dependency(path)
        try:
            record = read(path, "gallery", "experiment", again="measure it again")
            if record["kind"] == "experiment":  # the truth, of which the gallery is a view
                record = {**record, **gallery(record)}
            sections = list(_sections(record["functions"]))
            head = _head(record)
        except RecordError as error:
            return self._not_measured(str(error))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return self._not_measured(f"{path} holds no gallery ({type(error).__name__}: {error})")
        for section in sections:
            self.state.document.note_implicit_target(section, section)
        box = nodes.container("", classes=["gradspec-filter"])
        return [note_object(self, "record", path.stem, head), head, box, *sections]

    def _not_measured(self, message: str) -> list[nodes.Node]:
        warn_each_build(self, GradspecWarning.RECORD, message)
        return [paragraph(badge(Status.NOT_MEASURED))]


def rank_of(function: Mapping[str, Any]) -> str:
    """Return the most dangerous rank in which something was found of a function; empty if nothing was."""
    found = {one["rank"] for one in function["found"]}
    if unknown := found - RANKS.keys():
        raise ValueError(f"no rank {sorted(unknown)[0]!r}")
    return next((rank for rank in RANKS if rank in found), "")


def _head(record: Mapping[str, Any]) -> nodes.paragraph:
    functions, facts = record["functions"], record["measured_with"]
    packages = len({function["package"] for function in functions})
    counts = [sum(rank_of(function) == rank for function in functions) for rank in RANKS]
    parts = [f"{count} {said}" for count, said in zip(counts, COUNTED, strict=True) if count]
    return paragraph(
        f"{len(functions)} function{'s' * (len(functions) != 1)} of {packages} "
        f"package{'s' * (packages != 1)}, measured with torch {facts['torch']} and Python {facts['python']}: "
        f"{', '.join(parts)}."
    )


def _sections(functions: Sequence[Mapping[str, Any]]) -> Iterator[nodes.section]:
    for rank, (title, said) in RANKS.items():
        mine = [function for function in functions if rank_of(function) == rank]
        if mine:
            made = nodes.section("", nodes.title("", title), paragraph(said), ids=[f"gallery-{rank or 'sound'}"])
            made["names"].append(f"gallery-{rank or 'sound'}")
            for function in mine:
                made += nodes.container("", *_function(function), classes=["gradspec-entry"])
            yield made


def _function(function: Mapping[str, Any]) -> list[nodes.Node]:
    title = nodes.rubric("", "", nodes.literal("", function["class"]), nodes.Text(" "))
    title += span(f"{function['package']} {function['version']}", "gradspec-detail")
    lines = [_found(one) for one in function["found"]]
    lines += [paragraph(nodes.strong("", "Deliberate: "), nodes.Text(f"{why}.")) for why in function["deliberate"]]
    shown: list[nodes.Node] = [title]
    if lines:
        shown.append(nodes.bullet_list("", *(nodes.list_item("", line) for line in lines)))
    address = function["report"]
    shown_address = nodes.Text(address.removeprefix("https://"))
    link = nodes.reference("", "", shown_address, refuri=address) if is_linked(address) else shown_address
    where = paragraph("Report it: ", link, ".")
    return [*shown, folded("Reproduce and report", code("\n".join(function["reproduce"]), "sh"), where)]


def _found(one: Mapping[str, Any]) -> nodes.paragraph:
    parts: list[str | nodes.Node] = [one["what"], " ", nodes.Text(one["measured"])]
    if one["laws"]:
        return paragraph(*parts, " (law ", law_link(one["laws"][0]), ").")
    return paragraph(*parts, ".")
