"""The findings of a report, one for each cause, and those that make a run fail."""

from gradspec.findings._excuse import by_cell, excuse
from gradspec.findings._findings import ORDER, Found, findings, rank_of, rank_words, scope_of
from gradspec.findings._judgement import Bar, Judged, Judgement, is_asked, judge
from gradspec.findings._sentence import sentence

__all__ = [
    "ORDER",
    "Bar",
    "Found",
    "Judged",
    "Judgement",
    "by_cell",
    "excuse",
    "findings",
    "is_asked",
    "judge",
    "rank_of",
    "rank_words",
    "scope_of",
    "sentence",
]
