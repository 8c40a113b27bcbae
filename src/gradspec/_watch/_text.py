"""Format a watch as text: a table, the most dangerous function first, then the findings of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradspec._one_line import for_log
from gradspec.findings import rank_words, scope_of
from gradspec.law import Rank, Scope
from gradspec.render._text import finding_text, line, question

if TYPE_CHECKING:
    from gradspec._watch._row import Program, Row
    from gradspec.report import Report

#: How many findings of a function are said in full.
SHOWN = 2
#: What is in the name of a class that a function makes.
LOCAL = "<locals>"
NO_TORCH = "no Python process of the program imported torch, so nothing was seen"
NOTHING = (
    "no custom gradient was seen: no torch.autograd.Function and no operator of torch.library beside torch's own was "
    "called; hooks of tensors and modules, and detach(), are not looked at"
)


def text(program: Program, *, details: bool = False) -> str:
    """Return the whole report."""
    if not program.processes:
        return for_log("\n".join([f"gradspec watch: {NO_TORCH}", *_troubles(program)]))
    if not program.rows:
        others = f"{len(program.others)} of others: {', '.join(dict.fromkeys(program.others))}"
        said = f"no custom gradient of what is asked about was seen, and {others}" if program.others else NOTHING
        return for_log("\n".join([f"gradspec watch: {said}", *_troubles(program)]))
    lines = [*_head(program), "", *_table(program.rows), "", *_findings(program.rows, details), *_end(program)]
    return for_log("\n".join(lines).rstrip())


def seen_text(program: Program) -> str:
    """Return what was seen, before an audit."""
    if not program.rows:
        return text(program)
    number = f"{len(program.rows)} custom gradient{'s' * (len(program.rows) != 1)} ran"
    table = _table(program.rows, is_judged=False)
    return for_log("\n".join([f"gradspec watch: {number}", "", *table, *_troubles(program)]))


def _head(program: Program) -> Iterator[str]:
    rows = program.rows
    wrong = sum(row.is_wrong for row in rows)
    audited = sum(row.report is not None for row in rows)
    of = f" in {program.callers} processes" if program.callers > 1 else ""
    number = f"{len(rows)} custom gradient{'s' * (len(rows) != 1)} ran{of}"
    yield f"gradspec watch: {number}, {audited} audited, {wrong} wrong in {_asked(program)}"


def _asked(program: Program) -> str:
    named = next((row.scopes for row in program.rows if row.scopes), ())
    return ", ".join(scope.words for scope in named) or "what the program uses"


def _table(rows: Sequence[Row], *, is_judged: bool = True) -> list[str]:
    cells = [("function", "calls", "backward", "used with", "verdict" if is_judged else "")]
    for row in rows:
        said = verdict(row) if is_judged else ""
        backwards = _count(row.backwards, is_sure=not (row.traced or row.is_operator))
        cells.append((row.key, _count(row.forwards, is_sure=not row.traced), backwards, _uses(row), said))
    widths = [max(map(len, column)) for column in zip(*(line[:-1] for line in cells), strict=True)]
    lines = []
    for *words, last in cells:
        parts = [
            word.ljust(width) if column in (0, 3) else word.rjust(width)
            for column, (word, width) in enumerate(zip(words, widths, strict=True))
        ]
        lines.append("  ".join([*parts, last]).rstrip())
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _count(number: int, *, is_sure: bool) -> str:
    return f"{number:,}" if number or is_sure else "not known"


def _uses(row: Row) -> str:
    return ", ".join(row.uses) or "plain eager mode"


def verdict(row: Row) -> str:
    """Return what is said of a function, in a few words."""
    if row.report is None:
        return "not audited"
    beside = " (numbers drawn)" * row.is_traced_only + f" (NaN or infinity in pass {row.not_finite})" * (
        row.not_finite > 0
    )
    return f"{_verdict(row, row.report)}{beside}"


def _verdict(row: Row, report: Report) -> str:
    if not row.asked:
        is_known = any(one.is_asked for one in row.judgement.findings) if row.judgement is not None else False
        return "nothing new" if is_known else "nothing found"
    worst = row.asked[0].found
    laws = ", ".join(dict.fromkeys(law for one in row.asked if one.found.rank == worst.rank for law in one.found.laws))
    scope = scope_of(worst.verdict.law, report.laws)
    inside = f" in {scope.words}" if isinstance(worst.rank, Rank) and scope is not Scope.TRAINING else ""
    said = f"{rank_words(worst.rank)}{inside}: {laws}"
    return f"nothing wrong ({said})" if worst.rank == Rank.WASTE else said


def _findings(rows: Sequence[Row], details: bool) -> Iterator[str]:
    for row in rows:
        if row.report is None:
            yield from (f"{row.key}: not audited: {row.why}", *_not_finite(row), "")
        elif row.asked or row.not_finite:
            assert row.judgement is not None
            yield f"{row.key}{f'  ({_short(row.where)})' if row.where else ''}"
            if row.lines:
                yield f"  called from {', '.join(map(_short, row.lines))}, as {row.kinds[0] if row.kinds else '...'}"
            yield from _not_finite(row)
            if row.is_traced_only:
                yield f"  seen by a compiler alone, as {row.kinds[0]}: numbers were drawn in place of the program's"
            told = [one for one in row.asked if one.fails and not one.is_question]
            rest = [one for one in row.asked if one not in told]
            for one in told if details else told[:SHOWN]:
                yield from ("", *(f"  {said}" for said in finding_text(one.found, details=details).splitlines()))
            if (more := len(told) - SHOWN) > 0 and not details:
                yield f"\n  and {more} more: --verbose shows {'them' if more > 1 else 'it'}"
            for one in rest:
                yield f"  {question(one.found) if one.is_question else line(one.found)}"
                if one.is_question and one.found.verdict.rerun:
                    yield f"  Answer by an option of: {one.found.verdict.rerun}"
            yield ""


def _not_finite(row: Row) -> list[str]:
    said = f"  its backward pass {row.not_finite} returned NaN or infinity, and what it was handed was finite"
    return [said] if row.not_finite else []


def _end(program: Program) -> Iterator[str]:
    unused: dict[Scope, dict[str, list[str]]] = {}
    for row in program.rows:
        if row.judgement is not None and row.report is not None:
            outside = [one.found for one in row.judgement.findings if not one.is_asked and not one.is_question]
            for law in dict.fromkeys(law for one in outside for law in one.laws):
                of_scope = unused.setdefault(scope_of(law, row.report.laws), {})
                of_scope.setdefault(law, []).append(row.key)
    named = [row for row in program.rows if LOCAL not in row.key]  # which a command can name
    if any(one.is_question and not one.found.verdict.rerun for row in named for one in row.asked):
        yield "Options of `gradspec audit` answer a question: `gradspec watch --save-cases FOLDER` says its command"
    for scope, laws in unused.items():
        said = "; ".join(f"`{law}` of {', '.join(keys)}" for law, keys in laws.items())
        yield f"Beside {_asked(program)}, there are findings of {scope.words}: {said} (--scope {scope} asks)"
    yield from _troubles(program)


def _troubles(program: Program) -> list[str]:
    return [f"gradspec watch: {trouble}" for trouble in program.troubles]


def _short(place: str) -> str:
    """Return a path as seen from the current folder, where it lies below."""
    path, colon, line = place.rpartition(":")
    relative = os.path.relpath(path) if path else ""
    return place if not path or relative.startswith("..") else f"{relative}{colon}{line}"
