"""A report as text, as what a service reads, and as a page: the words that every frontend shares."""

from gradspec.render._badge import badge
from gradspec.render._brief import brief_message
from gradspec.render._github import github
from gradspec.render._junit import junit
from gradspec.render._page import page
from gradspec.render._sarif import sarif
from gradspec.render._text import (
    SIGNS,
    baseline_lines,
    counts,
    excused,
    failure_text,
    finding_text,
    reason,
    specs_by_kind,
    summary_lines,
    words,
)

__all__ = [
    "SIGNS",
    "badge",
    "baseline_lines",
    "brief_message",
    "counts",
    "excused",
    "failure_text",
    "finding_text",
    "github",
    "junit",
    "page",
    "reason",
    "sarif",
    "specs_by_kind",
    "summary_lines",
    "words",
]
