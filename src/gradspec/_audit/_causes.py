"""Experiments that explain an audit's findings: a list, noise, a factor, a repeated index, float32, a write."""

from __future__ import annotations

from collections.abc import Sequence

from gradspec._audit._first_calls import with_first_calls
from gradspec._audit._follows import with_roots
from gradspec._audit._graphless import with_graphless
from gradspec._audit._hidden import with_hidden
from gradspec._audit._how_wrong import with_how_wrong
from gradspec._audit._lost import with_lost, with_stopped
from gradspec._audit._measured import Measured
from gradspec._audit._named_rows import with_named_rows
from gradspec._audit._of_earlier import with_earlier
from gradspec._audit._of_writes import with_writes
from gradspec._audit._single import with_float32
from gradspec._audit._subject import Subject
from gradspec.explain import are_asked
from gradspec.law import Law
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import Case


def explained(
    report: Report,
    subject: Subject,
    cases: tuple[Case, ...],
    measured: Measured,
    laws: Sequence[Law],
    profile: Profile,
    seed: int,
) -> Report:
    """Return the report of an audit with the causes that plain calls show."""
    report = with_first_calls(report, subject, cases, measured, profile, seed)
    report = with_earlier(report, subject, cases, measured, laws, profile, seed)
    report = with_float32(report, subject, cases, measured, laws, profile, seed)
    report = with_named_rows(report, subject, cases, measured, laws, profile, seed)
    if not subject.has_reference and are_asked():  # a reference says what backward should be: nothing is left to guess
        report = with_how_wrong(report, subject, cases, measured, laws, profile, seed)
    report = with_writes(report, subject, cases, measured, laws, profile, seed)
    report = with_lost(report, measured.lost, measured.uncalled)
    report = with_graphless(report, measured.graphless)
    report = with_stopped(report, measured.stopped)
    report = with_hidden(report, measured)
    return with_roots(report, measured)
