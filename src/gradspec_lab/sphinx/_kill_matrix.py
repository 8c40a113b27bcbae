"""The directive `gradspec-kill-matrix`: which law noticed which function that is broken on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._page import note_object
from gradspec.sphinx_ext.page._fold import folded
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab.selftest._record import Matrix, Subject, read_matrix
from gradspec_lab.selftest._seeds_record import Seeds, read_seeds


class KillMatrixDirective(SphinxDirective):
    """Render a kill matrix; the argument is the path of its record, relative to the page.

    The option `seeds` is the path of a record of sound functions under many seeds.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"seeds": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return the counts and the tables, or that nothing was measured."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        self.env.note_dependency(path)
        if not path.exists():
            self.env.note_reread()
            return [paragraph(badge(Status.NOT_MEASURED), " (there is no record)")]
        try:
            matrix = read_matrix(path)
        except RecordError as error:
            warn_each_build(self, GradspecWarning.RECORD, str(error))
            return [paragraph(badge(Status.NOT_MEASURED))]
        seeds, wrong = self._seeds()
        for subject in matrix.faults:
            warn_each_build(self, GradspecWarning.BROKEN, f"kill matrix: {subject.name} {subject.fault}")
        head, *rest = _page(matrix)
        spoken = [] if seeds is None else [*_of_seeds(seeds)]
        return [note_object(self, "kill-matrix", path.stem, head), head, *rest, *spoken, *wrong]

    def _seeds(self) -> tuple[Seeds | None, list[nodes.Node]]:
        if "seeds" not in self.options:
            return None, []
        path = Path(self.env.relfn2path(self.options["seeds"])[1])
        self.env.note_dependency(path)
        try:
            return read_seeds(path), []
        except RecordError as error:
            warn_each_build(self, GradspecWarning.RECORD, str(error))
            return None, [paragraph(badge(Status.NOT_MEASURED), " (many seeds)")]


def _page(matrix: Matrix) -> Iterator[nodes.Element]:
    facts = matrix.provenance
    date = str(facts.get("date", "an unknown date"))[:10]
    yield nodes.bullet_list("", *(nodes.list_item("", paragraph(line)) for line in summary(matrix)))
    for sort, title in (("diseased", "Specimens that are broken on purpose"), ("honest", "Sound specimens")):
        if found := matrix.of(sort):
            tools = list(dict.fromkeys(tool for subject in found for tool in subject.stock))
            head = ["Specimen", "Killed by", *tools]
            rows = ([*_row(s), *(_opinion(s, t) for t in tools)] for s in found)
            yield folded(f"{title}: all {len(found)}", table(head, rows, "gradspec-kills"))
    if found := matrix.of("mutant"):
        title = "Mutants of the functions documented here"
        yield folded(f"{title}: all {len(found)}", table(["Mutant", "Killed by"], _grouped(found), "gradspec-kills"))
    known = [f"{name} {facts[name]}" for name in ("torch", "python", "device", "commit") if facts.get(name)]
    if stages := facts.get("stages"):
        yield paragraph(f"A mutant is held to {'; then to '.join(stages)}; no further once it is killed.")
    yield paragraph(f"Measured on {date} with {', '.join(known)}.", classes=["gradspec-detail"])


def summary(matrix: Matrix) -> Iterator[str]:
    """Yield the counts of a matrix, a sentence each."""
    if sick := matrix.of("diseased"):
        judged = [s for s in sick if not s.not_measured]
        caught = sum(not s.fault for s in judged)
        yield f"{caught} of {len(judged)} diseased specimens are killed by their own law{_tried(matrix, 'diseased')}."
        if skipped := len(sick) - len(judged):
            yield f"{skipped} cannot be judged on this device."
    if sound := matrix.of("honest"):
        broken = sum(s.is_killed for s in sound)
        yield f"{broken} of {len(sound)} sound specimens are broken by any law{_tried(matrix, 'honest')}."
    if mutants := matrix.of("mutant"):
        alive = [s for s in mutants if not s.is_killed]
        proven = sum(bool(s.proof) for s in alive)
        killed = len(mutants) - len(alive)
        yield f"{killed} of {len(mutants)} mutants are killed, {killed / len(mutants):.1%}{_tried(matrix, 'mutant')}."
        if alive:
            yield f"{proven} of the {len(alive)} that survive are proven to be no different from the original."
            yield f"{len(alive) - proven} survive without a proof."
    for tool in dict.fromkeys(tool for subject in matrix.subjects for tool in subject.stock):
        counts = [
            _rejects([s for s in matrix.of(sort) if _has_spoken(s, tool)], tool) for sort in ("diseased", "honest")
        ]
        yield f"{tool} rejects {counts[0]} of the same diseased specimens, and {counts[1]} of the sound ones."


def _of_seeds(record: Seeds) -> Iterator[nodes.Element]:
    seeds, facts = record.swept, record.provenance
    fewer = ", ".join(f"{most} of them for {what}" for what, most in seeds.get("at_most", {}).items())
    left = seeds.get("cases", 0) - seeds.get("tried", 0)
    untried = f", without {left} of {seeds['cases']} cases, which were not tried," if left else ""
    lines = [
        f"Under {seeds['run']} seeds{f' ({fewer})' if fewer else ''}{untried} {len(seeds['failures'])} of "
        f"{seeds['verdicts']:,} verdicts of {len(seeds['laws'])} laws on {len(seeds['specs'])} sound functions are "
        "broken, inconclusive or an error.",
        *(f"Under {line}." for line in seeds["failures"]),
        *_of_diseased_seeds(seeds.get("diseased")),
    ]
    yield nodes.rubric("", "Under many seeds")
    yield nodes.bullet_list("", *(nodes.list_item("", paragraph(line)) for line in lines))
    date = str(facts.get("date", "an unknown date"))[:10]
    commit = facts.get("commit") or "unknown"
    yield paragraph(f"Measured on {date} at commit {commit}.", classes=["gradspec-detail"])


def _of_diseased_seeds(sick: Mapping[str, Any] | None) -> Iterator[str]:
    if sick is None:
        return
    untried = f" of {sick['specimens']}" if sick["tried"] < sick["specimens"] else ""
    yield (
        f"The own laws of {sick['tried']}{untried} diseased specimens notice them "
        f"{sick['asked'] - len(sick['missed']):,} of {sick['asked']:,} times."
    )
    yield from (f"Under {line} misses it." for line in sick["missed"])


def _tried(matrix: Matrix, sort: str) -> str:
    count, there_are = len(matrix.of(sort)), matrix.population.get(sort, 0)
    return f" ({count} were tried, of {there_are} that there are)" if count < there_are else ""


def _rejects(subjects: Sequence[Subject], tool: str) -> str:
    return f"{sum(subject.stock[tool] != 'accepts' for subject in subjects)} of {len(subjects)}"


def _has_spoken(subject: Subject, tool: str) -> bool:
    return subject.stock.get(tool, "nothing to check") != "nothing to check"


def _grouped(subjects: Sequence[Subject]) -> Iterator[list[Cell]]:
    group = ""
    for subject in subjects:
        if subject.group != group:
            group = subject.group
            yield [nodes.literal("", group)]
        yield _row(subject, subject.name.partition(".")[2])


def _row(subject: Subject, shown: str = "") -> list[Cell]:
    return [nodes.literal("", shown or subject.name), _killers(subject)]


def _killers(subject: Subject) -> Cell:
    own = [name for name in subject.killed_by if name in subject.own]
    parts: list[nodes.Node] = []
    for name in [*own, *(name for name in subject.killed_by if name not in subject.own)]:
        link = law_link(name)
        parts += [nodes.Text(", ")] if parts else []
        parts.append(nodes.strong("", "", link) if name in own else link)
    if parts:
        return parts
    if subject.not_measured:
        return [badge(Status.NOT_MEASURED)]
    said = subject.crash or (f"nothing: {subject.proof}" if subject.proof else "nothing")
    return [nodes.Text(said)]


def _opinion(subject: Subject, tool: str) -> Cell:
    said = subject.stock.get(tool, "")
    return said if said in ("", "accepts", "nothing to check") else f"rejects ({said.partition(':')[0]})"
