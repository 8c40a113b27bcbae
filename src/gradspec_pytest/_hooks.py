"""The pytest hooks of the plugin: add items, and pass their verdicts on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gradspec_pytest._hold import LAST, held_by
from gradspec_pytest._items import LawItem, collectors
from gradspec_pytest._keepers import KEPT, OF, VERDICT, RecordKeeper, VacuousKeeper
from gradspec_pytest._run import refuse_settings, refuse_unread_pipe, targets_of
from gradspec_pytest._watching import TestsWatch

if TYPE_CHECKING:
    from collections.abc import Generator


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark behind `parametrize_with_laws`, and what keeps the record."""
    config.addinivalue_line("markers", "gradspec_laws(specs, laws): one test for each spec, law and case")
    refuse_settings(config)
    if config.option.gradspec_watch or config.option.gradspec_watch_only:
        config.pluginmanager.register(TestsWatch(config), "gradspec-watch")
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(VacuousKeeper(), "gradspec-vacuous")
    if config.option.gradspec_record:
        refuse_unread_pipe(config)
        config.pluginmanager.register(RecordKeeper(config), "gradspec-record")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is held to the laws."""
    targets = targets_of(config)
    return f"gradspec: {', '.join(targets)} (profile {config.option.gradspec_profile})" if targets else None


@pytest.hookimpl(tryfirst=True)  # before -k, -m and --deselect choose
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Add an item for each spec, law and case."""
    targets = targets_of(session.config)
    if not targets:
        return
    for collector in collectors(session, targets):
        items.extend(session.genitems(collector))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tell each group which of its tests run: what follows from a test that does not is a failure of its own."""
    for item in session.items:
        if (held := held_by(item)) is not None and item.get_closest_marker("skip") is None:
            held.group.selected.add(held.check.cell)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send the verdict of an item with its report: the process that writes the record may be another one."""
    report = yield
    if call.when == "call" and LAST:
        from gradspec.law import verdict_to_dict

        verdict, of = LAST[-1]
        LAST.clear()  # a test may have called `check` twice
        setattr(report, VERDICT, json.dumps(verdict_to_dict(verdict)))  # plain: xdist sends it
        setattr(report, OF, of)
        setattr(report, KEPT, isinstance(item, LawItem))
    return report
