"""Findings as commands of a GitHub workflow: the pull request shows each beside the line that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec.render._place import place_of_spec
from gradspec.render._remarks import remarks
from gradspec.render._text import finding_text

if TYPE_CHECKING:
    from gradspec.findings import Judged, Judgement
    from gradspec.report import Report

#: What ends a message, or begins an escape.
_IN_MESSAGE = {"%": "%25", "\r": "%0D", "\n": "%0A"}
#: What ends a property besides.
_IN_PROPERTY = {**_IN_MESSAGE, ":": "%3A", ",": "%2C"}


def github(judgement: Judgement) -> str:
    """Return a line for each finding: an error if it makes the run fail, a warning if it is only asked about.

    A question, what is not asked about, and a remark are notices.
    """
    report = judgement.report
    lines = [_command(judged, report) for judged in judgement.findings]
    lines += [_line("notice", f"gradspec: {spec}", remark, report, spec) for spec, remark in remarks(report)]
    return "".join(f"{line}\n" for line in lines)


def _command(judged: Judged, report: Report) -> str:
    title, _, rest = finding_text(judged.found).partition("\n")
    known = "gradspec, in the baseline: " if judged.is_known else "gradspec: "
    said = f"{known}{title.replace('`', '')}"
    return _line(_level(judged), said, rest.strip(), report, judged.found.verdict.spec)


def _level(judged: Judged) -> str:
    if judged.fails:
        return "error"
    return "warning" if judged.is_asked and not judged.is_question else "notice"


def _line(level: str, title: str, message: str, report: Report, spec: str) -> str:
    place = place_of_spec(report, spec)
    properties = {"file": place.file, "line": str(place.line)} if place else {}
    properties["title"] = title
    shown = ",".join(f"{name}={_escaped(value, _IN_PROPERTY)}" for name, value in properties.items())
    return f"::{level} {shown}::{_escaped(message, _IN_MESSAGE)}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)
