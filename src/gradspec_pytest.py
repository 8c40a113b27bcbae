"""The pytest plugin: one item for each spec, law and case. It imports torch only when specs are asked for."""

from __future__ import annotations

import contextlib
import json
import logging
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from gradspec._engine._plan import Check
    from gradspec._engine._session import Session
    from gradspec.law import Law, Verdict
    from gradspec.profile import Profile
    from gradspec.report import Report
    from gradspec.spec import Spec

#: The attribute of a test's report that holds a verdict.
VERDICT = "gradspec_verdict"
#: Beside it: how many its law has on its spec.
OF = "gradspec_of"
#: Beside it: whether it is of a target, as the record is.
KEPT = "gradspec_kept"


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
        "--gradspec-record",
        metavar="PATH",
        dest="gradspec_record",
        help="save the verdicts of --gradspec to a record; what it holds already is not measured again",
    )
    parser.addini(
        "gradspec_targets",
        type="linelist",
        default=[],
        help="targets of gradspec in a run that does not name single test files",
    )


def parametrize_with_laws(specs: Sequence[Spec], laws: Sequence[Law] | None = None) -> pytest.MarkDecorator:
    """Make of a test function one test for each spec, law and case; its argument `check` is called to run it.

    The options `--gradspec-profile` and `--gradspec-law` say which laws, and how hard.

    Args:
        specs: what is verified; their names are unique.
        laws: the laws to choose from; ours, and those of installed packages, unless given.

    Example:
        >>> from gradspec_pytest import parametrize_with_laws
        >>> from gradspec.functions import FUNCTIONS
        >>> @parametrize_with_laws(FUNCTIONS)
        ... def test_laws(check):
        ...     check()
    """
    return pytest.mark.gradspec_laws(tuple(specs), laws)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark behind `parametrize_with_laws`, and what keeps the record."""
    config.addinivalue_line("markers", "gradspec_laws(specs, laws): one test for each spec, law and case")
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(VacuousKeeper(), "gradspec-vacuous")
    if config.option.gradspec_record:
        config.pluginmanager.register(RecordKeeper(config), "gradspec-record")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the test functions that `parametrize_with_laws` decorates."""
    marker = metafunc.definition.get_closest_marker("gradspec_laws")
    if marker is None:
        return
    from gradspec._engine._plan import plan
    from gradspec._engine._session import Session
    from gradspec._registry._registry import LawError, laws
    from gradspec.profile import ProfileError, load_profile

    option = metafunc.config.option
    specs, given = marker.args
    try:
        profile = load_profile(option.gradspec_profile)
        profile = replace(profile, laws=tuple(option.gradspec_laws) or profile.laws)
        checks = plan(specs, given or laws(), profile)
    except (LawError, ProfileError, ValueError) as error:
        raise pytest.UsageError(f"gradspec: {' '.join(str(error).split())}") from None
    session = Session(checks, profile)
    metafunc.config.add_cleanup(session.close)
    number = Counter((check.spec.name, check.law.name) for check in checks)
    metafunc.parametrize(
        "check",
        [partial(_hold, session.run, check, number[check.spec.name, check.law.name]) for check in checks],
        ids=[f"{check.spec.name}::{check.law.name}[{check.case}]" for check in checks],
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is held to the laws."""
    targets = _targets(config)
    return f"gradspec: {', '.join(targets)} (profile {config.option.gradspec_profile})" if targets else None


@pytest.hookimpl(tryfirst=True)  # before -k, -m and --deselect choose
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Add an item for each spec, law and case."""
    targets = _targets(session.config)
    if not targets:
        return
    for collector in _collectors(session, targets):
        items.extend(session.genitems(collector))


class SpecCollector(pytest.Collector):
    """The checks of one spec."""

    def __init__(self, *, checks: list[Check], profile: Profile, known: Sequence[Verdict], **rest: Any) -> None:
        super().__init__(**rest)
        self.checks = checks
        #: How many checks each law has.
        self.of_law = Counter(check.law.name for check in checks)
        self.profile = profile
        #: The verdicts of a record that are still valid.
        self.known = known
        self.session_of_checks: Session | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each law and case."""
        for check in self.checks:
            yield LawItem.from_parent(self, name=f"{check.law.name}[{check.case}]", check=check)

    def run(self, check: Check) -> Verdict:
        """Return the verdict of a check; one child process serves all items of the spec."""
        from gradspec._engine._session import Session

        if self.session_of_checks is None:
            self.session_of_checks = Session(self.checks, self.profile, said=self.known)
        return self.session_of_checks.run(check)

    def teardown(self) -> None:
        """End the child process after the last item."""
        if self.session_of_checks is not None:
            self.session_of_checks.close()


class LawItem(pytest.Item):
    """One law, held against one spec on one case."""

    parent: SpecCollector

    def __init__(self, *, check: Check, **rest: Any) -> None:
        super().__init__(**rest)
        self.check = check

    def runtest(self) -> None:
        """Run the check, and say what the command line would say."""
        _hold(self.parent.run, self.check, self.parent.of_law[self.check.law.name])

    def reportinfo(self) -> tuple[Any, None, str]:
        """Return where the item is; it has no line in a file."""
        return self.path, None, self.nodeid


#: The verdict of the test that runs, and how many its law has on its spec.
_LAST: list[tuple[Verdict, int]] = []


def _hold(run: Callable[[Check], Verdict], check: Check, of: int) -> None:
    """Run a check, one of so many of its law on its spec, and fail or skip in the words of the command line."""
    from gradspec.law import Status
    from gradspec.render import failure_text, reason

    with pytest.MonkeyPatch.context() as patch:
        # Compiling writes blank debug records by the dozen, and pytest would show them under a failure.
        patch.setattr(logging.getLogger("torch.__trace"), "propagate", False)
        verdict = run(check)
    _LAST.append((verdict, of))
    if verdict.status.is_failure:
        pytest.fail(failure_text(verdict), pytrace=False)
    if verdict.status in (Status.NOT_APPLICABLE, Status.NOT_MEASURED):
        pytest.skip(reason(verdict))


def _targets(config: pytest.Config) -> list[str]:
    given: list[str] = config.option.gradspec_targets
    if given:
        return given
    # Who runs one test file does not wait for all laws.
    single = any(arg.partition("::")[0].endswith(".py") for arg in config.args)
    return [] if single else config.getini("gradspec_targets")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send the verdict of an item with its report: the process that writes the record may be another one."""
    report = yield
    if call.when == "call" and _LAST:
        from gradspec.report import verdict_to_dict

        verdict, of = _LAST[-1]
        _LAST.clear()  # a test may have called `check` twice
        setattr(report, VERDICT, json.dumps(verdict_to_dict(verdict)))  # plain: xdist sends it
        setattr(report, OF, of)
        setattr(report, KEPT, isinstance(item, LawItem))
    return report


class VacuousKeeper:
    """Says at the end which laws held on every case of a spec, and would have held for a wrong result too."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.of: dict[tuple[str, str], int] = {}
        self.texts: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the verdict of a test."""
        if (text := getattr(report, VERDICT, None)) is not None:
            verdict = json.loads(text)
            key = (verdict["spec"], verdict["law"])
            self.found.setdefault(key, []).append(verdict)
            self.of[key] = getattr(report, OF)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judge each law on the specs of which all cases ran; one that shows nothing fails the run."""
        whole = [found for key, found in self.found.items() if len(found) == self.of[key]]
        if not any("blind" in verdict["details"] for found in whole for verdict in found):
            return
        from gradspec._engine._vacuous import settled
        from gradspec.law import Status
        from gradspec.render import failure_text
        from gradspec.report import verdict_from_dict

        for found in whole:
            vacuous = [v for v in settled(map(verdict_from_dict, found)) if v.status is Status.VACUOUS]
            self.texts += [failure_text(verdict) for verdict in vacuous[:1]]
        if self.texts and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say which."""
        for text in self.texts:
            terminalreporter.section("gradspec: a law shows nothing", red=True)
            terminalreporter.write_line(text)


class RecordKeeper:
    """Takes the verdicts of a run as they come, and writes them at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.found: list[dict[str, Any]] = []
        self.line = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the verdict of an item."""
        if (verdict := getattr(report, VERDICT, None)) is not None and getattr(report, KEPT):
            self.found.append(json.loads(verdict))

    def pytest_sessionfinish(self) -> None:
        """Write the record, with what an earlier one holds beside it."""
        if not self.found or not (targets := _targets(self.config)):
            return
        from gradspec._engine._reuse import current, merged
        from gradspec._engine._vacuous import settled
        from gradspec._record import only_writer
        from gradspec.report import verdict_from_dict, write_record

        run = _Run.of(self.config, targets)
        path, known = Path(self.config.option.gradspec_record), run.known
        report = replace(run.blank, verdicts=tuple(map(verdict_from_dict, self.found)))
        reused = len(current(known, run.blank, run.checks)) if known else 0
        with only_writer(path):
            there = _kept(path)  # another run may have written to it since
            write_record(merged(there, report) if there else replace(report, verdicts=settled(report.verdicts)), path)
        self.line = f"gradspec: {reused:,} of {len(self.found):,} cells were current; written to {path}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was measured."""
        if self.line:
            terminalreporter.write_line(self.line)


@dataclass(frozen=True)
class _Run:
    """What the targets of a run are held to."""

    pairs: list[tuple[str, Spec]]
    checks: list[Check]
    profile: Profile
    #: The report of the run before it has a verdict; only where there is a record.
    blank: Any
    known: Any

    @classmethod
    def of(cls, config: pytest.Config, targets: list[str]) -> _Run:
        from gradspec._engine._verify import blank
        from gradspec._registry._registry import LawError, resolve_all, select_checks, select_laws
        from gradspec._registry._targets import TargetError
        from gradspec.profile import ProfileError, load_profile

        option = config.option
        try:
            profile = load_profile(option.gradspec_profile)
            profile = replace(profile, laws=tuple(option.gradspec_laws) or profile.laws)
            pairs, laws = resolve_all(targets), select_laws(profile.laws)
            checks = select_checks(pairs, laws, profile)
        except (LawError, ProfileError, TargetError) as error:
            raise pytest.UsageError(f"gradspec: {' '.join(str(error).split())}") from None
        report = known = None
        if option.gradspec_record:
            paths = {spec.name: path for path, spec in pairs}
            report = blank([spec for _, spec in pairs], laws, profile, paths=paths)
            known = _kept(Path(option.gradspec_record))
        return cls(pairs, checks, profile, report, known)


def _kept(path: Path) -> Report | None:
    from gradspec.report import RecordError, read_record

    with contextlib.suppress(RecordError):  # one that cannot be read is written anew
        return read_record(path)
    return None


def _collectors(session: pytest.Session, targets: list[str]) -> Iterator[SpecCollector]:
    from gradspec._engine._reuse import current
    from gradspec._engine._vacuous import unsettled

    run = _Run.of(session.config, targets)
    stands = list(map(unsettled, current(run.known, run.blank, run.checks).values())) if run.known else []
    for _, spec in run.pairs:
        mine = [check for check in run.checks if check.spec is spec]
        known = [verdict for verdict in stands if verdict.spec == spec.name]
        yield SpecCollector.from_parent(
            session, name=spec.name, nodeid=spec.name, checks=mine, profile=run.profile, known=known
        )
