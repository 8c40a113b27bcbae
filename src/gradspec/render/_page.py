"""A report as one page of HTML: it needs no script and no other file, and what it shows is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib.resources import files
from textwrap import dedent
from typing import TYPE_CHECKING

from gradspec.findings import rank_words, scope_of, sentence
from gradspec.findings._findings import standing
from gradspec.law import Status, Verdict
from gradspec.render._remarks import remarks
from gradspec.render._table import counted, law_rows
from gradspec.render._text import (
    SIGNS,
    baseline_lines,
    finding_text,
    reason,
    specs_by_kind,
    summary_lines,
)

if TYPE_CHECKING:
    from gradspec.findings import Judged, Judgement
    from gradspec.render._text import Standing
    from gradspec.report import Report

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def page(judgement: Judgement) -> str:
    """Return the page: what was found, a table of specs and laws, each check that does more than hold, and where."""
    style = files("gradspec.render").joinpath("page.css").read_text(encoding="utf-8")
    specs = list(dict.fromkeys(verdict.spec for verdict in judgement.report.verdicts))
    title = f"gradspec: {', '.join(specs[:3])}{f' and {len(specs) - 3} more' if len(specs) > 3 else ''}"
    return _PAGE.format(title=escape(title), style=style, body="\n".join(_body(judgement, title)))


def _body(judgement: Judgement, title: str) -> Iterator[str]:
    report = judgement.report
    yield f"<h1>{escape(title)}</h1>"
    yield _list((*summary_lines(report), *filter(None, [sentence(judgement)])))
    if judgement.has_baseline:
        yield "<h2>Against the baseline</h2>"
        yield _list(line.strip() for line in baseline_lines(judgement))
    yield "<h2>Findings</h2>"
    yield from (_finding(judged, report) for judged in judgement.findings)
    if not judgement.findings:
        yield "<p>None.</p>"
    if said := remarks(report):
        yield "<h2>Remarks</h2>"
        yield _list(f"{spec}: {remark}" for spec, remark in said)
    yield "<h2>Laws</h2>"
    for specs in specs_by_kind(report):
        yield _matrix(report, specs)
    yield "<h2>Checks</h2>"
    yield "<p>What a law says of each case, where it says more than that it holds.</p>"
    yield from (_checks(spec, report.of(spec=spec)) for specs in specs_by_kind(report) for spec in specs)
    yield "<h2>Where it was measured</h2>"
    yield _table(("what", "value"), ((_code(name), _code(text)) for name, text in _facts(report)))


def _finding(judged: Judged, report: Report) -> str:
    title, _, rest = finding_text(judged.found).partition("\n")
    marks = [scope_of(judged.found.verdict.law, report.laws).words.replace("`", ""), rank_words(judged.found.rank)]
    marks += [] if judged.is_asked else ["not asked about"]
    marks += ["in the baseline"] if judged.is_known else []
    kind = "finding" if judged.fails else "finding excused"
    words_of_it = f"<h3>{_marked(title)}</h3>\n<p>{escape(', '.join(marks))}</p>"
    return f'<section class="{kind}">\n{words_of_it}\n<pre>{escape(dedent(rest).strip())}</pre>\n</section>'


def _matrix(report: Report, specs: list[str]) -> str:
    rows = ((_code(law), *map(_counted, numbers)) for law, numbers in law_rows(report, specs))
    return _table(("law", *specs), rows)


def _checks(spec: str, verdicts: Iterable[Verdict]) -> str:
    rows = [
        (_code(verdict.law), escape(verdict.case), _status(standing(verdict), reason(verdict)))
        for verdict in verdicts
        if verdict.status is not Status.HOLDS
    ]
    table = _table(("law", "case", "verdict"), rows) if rows else "<p>All hold.</p>"
    return f"<details>\n<summary>{escape(spec)}: {len(rows)}</summary>\n{table}\n</details>"


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    for name, value in report.provenance.items():
        if value not in (None, "", {}):
            yield str(name), ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def _counted(number: Mapping[Standing, int]) -> str:
    return "<br>".join(_status(status, counted(status, count, signs=False)) for status, count in number.items())


def _status(status: Standing, text: str) -> str:
    return f'<span class="{status.value}">{SIGNS[status]} {escape(text)}</span>'


def _table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table that scrolls by itself where the screen is narrower; its cells are HTML, its headers text."""
    heads = "".join(f'<th scope="col">{escape(header)}</th>' for header in headers)
    lines = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="table" tabindex="0">\n{table}\n</div>'


def _list(lines: Iterable[str]) -> str:
    items = "\n".join(f"<li>{_marked(line)}</li>" for line in lines)
    return f"<ul>\n{items}\n</ul>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _marked(text: str) -> str:
    """Return a line whose parts between backquotes are code."""
    parts = text.split("`")
    whole = len(parts) % 2 == 1
    return "".join(_code(part) if whole and place % 2 else escape(part) for place, part in enumerate(parts))
