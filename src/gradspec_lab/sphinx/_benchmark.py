"""The directive `gradspec-benchmark`: recorded times and sizes as tables, and where and when they were measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from gradspec._record import read_experiment
from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._domain import domain_of
from gradspec.sphinx_ext.domain._page import note_object
from gradspec.sphinx_ext.page._fold import folded
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge

#: What a record holds beside its settings.
_OWN = (
    "schema",
    "kind",
    "name",
    "what",
    "provenance",
    "sources",
    "measurements",
    "seen",
    "figures",
    "maps",
    "checksum",
)


class BenchmarkDirective(SphinxDirective):
    """Render benchmarks, a section each: the path of a record, relative to the page, or a pattern (`*.json`).

    With the option `folded` each is behind its title, and opens where a reader asks for it.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], object]]] = {"folded": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return a section for each record, or that nothing was measured."""
        pattern = Path(self.env.relfn2path(self.arguments[0])[1])
        paths = sorted(pattern.parent.glob(pattern.name))
        domain_of(self.env).note_pattern(pattern, paths)
        if not paths:
            return [self._not_measured(f"there is no record {pattern}: measure it, or take the directive out")]
        return [node for path in paths for node in self._section(path)]

    def _section(self, path: Path) -> list[nodes.Node]:
        self.env.note_dependency(path)
        try:
            record = read_experiment(path)
            content = list(_content(record))
        except RecordError as error:
            return [self._not_measured(str(error))]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{path} is not the record of a benchmark ({type(error).__name__}: {error})"
            return [self._not_measured(message)]
        title = _words(str(record["name"]))
        shown: nodes.Element
        if "folded" in self.options:
            shown = folded(f"Every number: {title}", *content)
        else:
            shown = nodes.section("", nodes.title("", title[:1].upper() + title[1:]), *content)
        shown["ids"] = [nodes.make_id(f"benchmark-{record['name']}")]
        self.state.document.note_explicit_target(shown, shown)
        return [note_object(self, "benchmark", str(record["name"]), shown), shown]

    def _not_measured(self, message: str) -> nodes.Node:
        warn_each_build(self, GradspecWarning.RECORD, message)
        return paragraph(badge(Status.NOT_MEASURED))


def _content(record: Mapping[str, Any]) -> Iterator[nodes.Node]:
    what = str(record["what"])
    yield paragraph(nodes.Text(f"{what[:1].upper()}{what[1:]}."))
    settings = [f"{_words(key)} {_shown(value)}" for key, value in record.items() if key not in _OWN]
    if settings:
        yield paragraph(nodes.Text(f"In all of them: {', '.join(settings)}."))
    found = list(measurements(record["measurements"]))
    if not found:
        raise ValueError("it holds no measurement")
    yield from found
    provenance = record["provenance"]
    known = ", ".join(f"{_words(key)} {_shown(value)}" for key, value in provenance.items() if key != "date")
    yield paragraph(nodes.Text(f"Measured on {provenance['date']}: {known}."), classes=["gradspec-detail"])


def measurements(measured: Iterable[Mapping[str, Any]]) -> Iterator[nodes.Node]:
    """Yield the tables of measurements: those that have the same numbers are columns of one."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for measurement in measured:
        facts = _unique(_facts(measurement))
        groups.setdefault(tuple(facts), []).append(facts)
    for (first, *rest), columns in groups.items():
        head: list[Cell] = [nodes.Text(first), *(nodes.Text(facts[first]) for facts in columns)]
        rows: list[list[Cell]] = [[nodes.Text(name), *(nodes.Text(facts[name]) for facts in columns)] for name in rest]
        yield table(head, rows, "gradspec-numbers")


def _unique(facts: Iterator[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for label, value in facts:
        if label in found:
            raise ValueError(f"two values are called {label!r}")
        found[label] = value
    return found


def _facts(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield label and value of each number of a measurement, whatever it is nested in."""
    for key, value in data.items():
        label = f"{before}, {_words(key)}" if before else _words(key)
        items = value if isinstance(value, list) and value and isinstance(value[0], Mapping) else [value]
        for item in items:
            if isinstance(item, Mapping) and {"of", "to", "median", "quartiles"} <= item.keys():
                low, high = map(_shown, item["quartiles"])
                yield f"{item['of']} / {item['to']}, median (quartiles)", f"{_shown(item['median'])} ({low} to {high})"
            elif isinstance(item, Mapping):
                yield from _facts(item, label)
            else:
                yield label, _shown(item)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(key)} {_shown(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        shape = all(isinstance(item, int) for item in value)
        return (" x " if shape else ", ").join(map(_shown, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
