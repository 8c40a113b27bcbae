"""The sections that say what was measured: errors, examples, states, and where and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docutils import nodes

from gradspec.law import Verdict
from gradspec.report import Report
from gradspec.sphinx_ext.page._fold import folded
from gradspec.sphinx_ext.page._nodes import Cell, code, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec.sphinx_ext.page._view import View

#: So many wrong calls are shown; the others wait behind a title.
SHOWN = 3


def errors(view: View) -> Iterator[nodes.Node]:
    """Yield each documented misuse, with the call that fails and the error that it really raised."""
    rows: list[list[Cell]] = []
    for verdict in view.verdicts("wrong_call"):
        details = verdict.finding.details
        raised: Cell = badge(verdict.status)
        if "error" in details:
            raised = [nodes.literal("", details["error"]), nodes.Text(f": {details['message']}")]
        call = nodes.literal("", details["call"]) if "call" in details else ""
        rows.append([[paragraph(_capital(verdict.case)), paragraph(call)], raised])
    if rows:
        head = ["Wrong call", "Error"]
        yield paragraph("Each call was made and raised the error beside it.")
        yield table(head, rows[:SHOWN], "gradspec-errors")
        if rest := rows[SHOWN:]:
            yield folded(f"{len(rest)} more wrong calls", table(head, rest, "gradspec-errors"))


def examples(view: View) -> Iterator[nodes.Node]:
    """Yield the examples of the docstrings, with the output that the run printed."""
    for verdict in filter(is_shown, view.verdicts("examples")):
        blocks = verdict.finding.details["examples"]
        yield paragraph(nodes.literal("", verdict.case.rpartition(".")[2]), classes=["gradspec-equation"])
        yield code("\n".join(_transcript(example) for example in blocks), "pycon")


def is_shown(verdict: Verdict) -> bool:
    """Whether a verdict on the examples of a docstring holds them, so that the page shows them."""
    return bool(verdict.finding.details.get("examples"))


def state(view: View) -> Iterator[nodes.Node]:
    """Yield what the states of a module held, and what a published one may hold beside it."""
    rows: list[list[Cell]] = []
    for verdict in view.verdicts("state_dict"):
        details = verdict.finding.details
        if "keys" in details:
            rows.append([verdict.case, _keys(details["keys"]), _keys(details["dropped"])])
    if rows:
        yield paragraph(
            "The state of each was saved, and loaded with `strict=True` into another module, which evaluates alike."
        )
        yield table(["Case", "Keys", "Keys of published checkpoints that loading drops"], rows, "gradspec-state")


def provenance(view: View) -> Iterator[nodes.Node]:
    """Yield when, where and of what the measurements were made."""
    source = view.record.report.sources.get(f"spec {view.name}")
    facts = [[_sentence(name), text] for name, text in provenance_facts(view.record.report)]
    facts.append(["Spec version", str(view.sheet["version"])])
    if source is not None:
        note = " (the source has changed since)" if f"spec {view.name}" in view.record.changed else ""
        facts.append(["Key of the source", f"`{source.key}`{note}"])
    if view.sheet["path"]:
        facts.append(["Measure it again", f"`gradspec check {view.sheet['path']}`"])
    yield table(["What", "Value"], facts, "gradspec-facts")


def provenance_facts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the provenance of a report as words."""
    for name, value in report.provenance.items():
        if isinstance(value, Mapping):
            text = ", ".join(f"{key} {_shown(item)}" for key, item in value.items() if item not in ((), [], ""))
        else:
            text = _shown(value)
        if text:
            yield name, text


def measured_line(report: Report) -> str:
    """Return one sentence on when and on what a report was made."""
    facts = report.provenance
    profile = facts.get("profile") or {}
    return (
        f"Measured on {str(facts.get('date', '?'))[:10]} with torch {facts.get('torch', '?')}, "
        f"Python {facts.get('python', '?')}, device {facts.get('device', '?')}, "
        f"seed {facts.get('seed', '?')}, profile {profile.get('name', '?')}."
    )


def _keys(keys: Sequence[str]) -> Cell:
    if not keys:
        return "none"
    ends = dict.fromkeys((keys[0], keys[-1]))
    dots = nodes.Text(f" … {len(keys)} in all … " if len(keys) > 2 else ", ")
    first, *last = (nodes.literal("", key) for key in ends)
    return [first, *([dots, *last] if last else [])]


def _transcript(example: Mapping[str, Any]) -> str:
    source, got = example["source"].rstrip("\n"), example["got"].rstrip("\n")
    if not source.lstrip().startswith(">>>"):
        first, *rest = source.splitlines()
        source = "\n".join([f">>> {first}", *(f"... {line}" for line in rest)])
    return f"{source}\n{got}" if got else source


def _sentence(name: str) -> str:
    return _capital(name.replace("_", " "))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
