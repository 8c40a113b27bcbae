"""Experiments that explain an audit's findings: a list, noise, a factor, a repeated index, float32, a write."""

from __future__ import annotations

from gradspec._audit._asked import Asked
from gradspec._audit._first_calls import with_first_calls
from gradspec._audit._follows import with_roots
from gradspec._audit._graphless import with_graphless
from gradspec._audit._hidden import with_hidden
from gradspec._audit._how_wrong import with_how_wrong
from gradspec._audit._lost import with_lost, with_stopped
from gradspec._audit._of_earlier import with_earlier
from gradspec._audit._of_fakes import with_fakes
from gradspec._audit._of_writes import with_writes
from gradspec._audit._questions import with_questions
from gradspec._audit._single import with_float32
from gradspec.explain import are_asked
from gradspec.report import Report


def explained(report: Report, asked: Asked) -> Report:
    """Return the report of an audit with the causes that plain calls show."""
    measured = asked.measured
    for experiment in (with_first_calls, with_earlier, with_float32, with_questions):
        report = experiment(report, asked)
    if not asked.subject.has_reference and are_asked():  # a reference says what backward should be: nothing to guess
        report = with_how_wrong(report, asked)
    report = with_writes(with_fakes(report, asked), asked)
    report = with_lost(report, measured.lost, measured.uncalled)
    report = with_graphless(report, measured.graphless)
    report = with_stopped(report, measured.stopped)
    report = with_hidden(report, measured)
    return with_roots(report, measured)
