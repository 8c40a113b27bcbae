"""The pytest plugin: one item for each spec, law and case. It imports torch only when specs are asked for."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradspec._plan import Check
    from gradspec._session import Session
    from gradspec.law import Law, Verdict
    from gradspec.profile import Profile
    from gradspec.promise import Spec


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
    """Register the mark behind `parametrize_with_laws`."""
    config.addinivalue_line("markers", "gradspec_laws(specs, laws): one test for each spec, law and case")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the test functions that `parametrize_with_laws` decorates."""
    marker = metafunc.definition.get_closest_marker("gradspec_laws")
    if marker is None:
        return
    from gradspec._plan import plan
    from gradspec._session import Session
    from gradspec.profile import ProfileError, load_profile
    from gradspec.registry import LawError, laws

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
    metafunc.parametrize(
        "check",
        [partial(_hold, session.run, check) for check in checks],
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

    def __init__(self, *, checks: list[Check], profile: Profile, **rest: Any) -> None:
        super().__init__(**rest)
        self.checks = checks
        self.profile = profile
        self.session_of_checks: Session | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each law and case."""
        for check in self.checks:
            yield LawItem.from_parent(self, name=f"{check.law.name}[{check.case}]", check=check)

    def run(self, check: Check) -> Verdict:
        """Return the verdict of a check; one child process serves all items of the spec."""
        from gradspec._session import Session

        if self.session_of_checks is None:
            self.session_of_checks = Session(self.checks, self.profile)
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
        _hold(self.parent.run, self.check)

    def reportinfo(self) -> tuple[Any, None, str]:
        """Return where the item stands; it has no line in a file."""
        return self.path, None, self.nodeid


def _hold(run: Callable[[Check], Verdict], check: Check) -> None:
    """Run a check, and fail or skip in the words of the command line."""
    from gradspec.law import Status
    from gradspec.render import failure_text, reason

    with pytest.MonkeyPatch.context() as patch:
        # Compiling writes blank debug records by the dozen, and pytest would show them under a failure.
        patch.setattr(logging.getLogger("torch.__trace"), "propagate", False)
        verdict = run(check)
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


def _collectors(session: pytest.Session, targets: list[str]) -> Iterator[SpecCollector]:
    from gradspec._importing import TargetError
    from gradspec.profile import ProfileError, load_profile
    from gradspec.registry import LawError, resolve_all, select_checks, select_laws

    option = session.config.option
    try:
        profile = load_profile(option.gradspec_profile)
        profile = replace(profile, laws=tuple(option.gradspec_laws) or profile.laws)
        pairs = resolve_all(targets)
        checks = select_checks(pairs, select_laws(profile.laws), profile)
    except (LawError, ProfileError, TargetError) as error:
        raise pytest.UsageError(f"gradspec: {' '.join(str(error).split())}") from None
    for _, spec in pairs:
        mine = [check for check in checks if check.spec is spec]
        yield SpecCollector.from_parent(session, name=spec.name, nodeid=spec.name, checks=mine, profile=profile)
