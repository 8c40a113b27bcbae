"""The options of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    pass


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("gradspec", "laws of custom autograd functions")
    group.addoption(
        "--gradspec",
        action="append",
        default=[],
        metavar="TARGET",
        dest="gradspec_targets",
        help="hold the specs of TARGET to the laws: package.module, package.module:NAME or file.py; may be repeated",
    )
    group.addoption(
        "--gradspec-law",
        action="append",
        default=[],
        metavar="NAME",
        dest="gradspec_laws",
        help="only this law; may be repeated",
    )
    group.addoption(
        "--gradspec-profile",
        default="quick",
        metavar="NAME|FILE.toml",
        dest="gradspec_profile",
        help="which laws, how hard (default: quick)",
    )
    group.addoption(
        "--gradspec-scope",
        metavar="SCOPE[,...]",
        dest="gradspec_scope",
        help="what is asked about, as for `gradspec check --scope`; all else is skipped with what was found; "
        "with --gradspec-watch what its audits ask about",
    )
    group.addoption(
        "--gradspec-time-limit",
        type=float,
        metavar="SECONDS",
        dest="gradspec_time_limit",
        help="CPU time that one check may take; its test fails if it needs more (default of the profile)",
    )
    group.addoption(
        "--gradspec-record",
        metavar="PATH",
        dest="gradspec_record",
        help="save the verdicts of --gradspec to a record; what it holds already is not measured again",
    )
    group.addoption(
        "--gradspec-watch",
        action="store_true",
        dest="gradspec_watch",
        help="note every custom gradient that the tests run, and audit each on the calls that they make, at the end",
    )
    group.addoption(
        "--gradspec-watch-only",
        action="append",
        default=[],
        metavar="PACKAGE",
        dest="gradspec_watch_only",
        help="watch, and ask only about functions of this package; may be repeated",
    )
    parser.addini(
        "gradspec_targets",
        type="linelist",
        default=[],
        help="targets of gradspec in a run that does not name single test files",
    )
