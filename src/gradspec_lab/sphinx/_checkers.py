"""The directive `gradspec-checkers`: which kinds of mistake gradcheck, opcheck and the laws notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._page import records_for_page
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab.selftest._record import Matrix, Subject, read_matrix

#: What goes wrong where a law of a family is broken, in the words of a user.
MISTAKES = {
    "values": "Wrong output value, shape or dtype",
    "derivative": "Wrong gradient or second derivative",
    "inputs": "Fails on an empty, 0-d or strided input",
    "protocol": "Wrong on a second backward pass, under checkpointing, or for one gradient of several",
    "transforms": "Another result under `vmap`, `torch.func`, `compile` or `export`",
    "effects": "Writes to an argument, keeps memory, moves global state",
    "randomness": "Noise that no seed replays",
    "device": "Waits for the device, or differs on it",
}


class CheckersDirective(SphinxDirective):
    """Render a row for each kind of mistake; the argument is the path of a kill matrix.

    The option `unmeasured` names further checkers, separated by commas, that were not run on the specimens.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {"unmeasured": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return the table, or that nothing was measured."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        self.env.note_dependency(path)
        try:
            matrix = read_matrix(path)
        except RecordError as error:
            warn_each_build(self, GradspecWarning.RECORD, str(error))
            return [paragraph(badge(Status.NOT_MEASURED))]
        families = {name: str(law["family"]) for name, law in records_for_page(self.env).laws.items()}
        others = [name.strip() for name in self.options.get("unmeasured", "").split(",") if name.strip()]
        tools = tools_of(matrix)
        head: list[Cell] = ["What is wrong", *tools, *others, "gradspec"]
        rows = [[*row[:-1], *(badge(Status.NOT_MEASURED) for _ in others), row[-1]] for row in _rows(matrix, families)]
        facts = matrix.provenance
        date = str(facts.get("date", "an unknown date"))[:10]
        said = f"Measured on {date} at commit {facts.get('commit') or 'unknown'} with torch {facts.get('torch', '?')}."
        return [table(head, rows, "gradspec-checkers"), paragraph(said, classes=["gradspec-detail"])]


def tools_of(matrix: Matrix) -> Mapping[str, Sequence[str]]:
    """Return the checkers, each with the modes in which it was asked: "gradcheck", "gradcheck, fast mode"."""
    found: dict[str, list[str]] = {}
    for mode in dict.fromkeys(mode for subject in matrix.subjects for mode in subject.stock):
        found.setdefault(mode.partition(",")[0], []).append(mode)
    return found


def notices(subject: Subject, modes: Sequence[str], known: Mapping[str, set[str]]) -> bool:
    """Return whether a checker rejects a specimen for another reason than it gives for a sound function.

    Args:
        subject: the specimen.
        modes: in which the checker was asked.
        known: what each mode says of sound functions.
    """
    return any(mode in subject.stock and subject.stock[mode] not in known[mode] for mode in modes)


def _rows(matrix: Matrix, families: Mapping[str, str]) -> Iterator[list[Cell]]:
    tools = tools_of(matrix)
    sound = [subject for subject in matrix.of("honest") if subject.stock]
    silent = {"accepts", "nothing to check"}
    rejected = [
        sum(any(subject.stock.get(mode, "accepts") not in silent for mode in modes) for subject in sound)
        for modes in tools.values()
    ]
    false = [*rejected, sum(subject.is_killed for subject in sound)]
    if sound:
        yield ["Nothing: a sound function is rejected", *(f"{count} of {len(sound)}" for count in false)]
    known = {
        mode: silent | {subject.stock.get(mode, "accepts") for subject in sound}
        for modes in tools.values()
        for mode in modes
    }
    groups: dict[str, list[Subject]] = {family: [] for family in MISTAKES}
    for subject in matrix.of("diseased"):
        if subject.stock and subject.own and not subject.not_measured:
            groups.setdefault(families.get(subject.own[0], "other"), []).append(subject)
    for family, subjects in groups.items():
        if subjects:
            seen = [sum(notices(s, modes, known) for s in subjects) for modes in tools.values()]
            counts = [*seen, sum(not s.fault for s in subjects)]
            yield [MISTAKES.get(family, family.capitalize()), *(f"{count} of {len(subjects)}" for count in counts)]
