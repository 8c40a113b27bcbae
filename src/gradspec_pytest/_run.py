"""The settings of a run: its laws, and the verdicts that a record already has."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gradspec._engine._plan import Check
    from gradspec.profile import Profile
    from gradspec.report import Report
    from gradspec.spec import Spec


def targets_of(config: pytest.Config) -> list[str]:
    """Return the targets that are asked for, or else those of the configuration where no single file is run."""
    given: list[str] = config.option.gradspec_targets
    if given:
        return given
    # Who runs one test file does not wait for all laws.
    single = any(arg.partition("::")[0].endswith(".py") for arg in config.args)
    return [] if single else config.getini("gradspec_targets")


@dataclass(frozen=True)
class Run:
    """The laws and settings of a run."""

    pairs: list[tuple[str, Spec]]
    checks: list[Check]
    profile: Profile
    #: The report of the run before it has a verdict; only where there is a record.
    blank: Any
    known: Any

    @classmethod
    def of(cls, config: pytest.Config, targets: list[str]) -> Run:
        """Find the specs of targets and what they are held to.

        Raises:
            UsageError: a target or a law cannot be found or loaded.
        """
        from gradspec._engine._verify import blank
        from gradspec._registry._laws import LawError, select_laws
        from gradspec._registry._registry import resolve_all, select_checks
        from gradspec._registry._targets import TargetError
        from gradspec._registry._twins import refuse_twins

        option = config.option
        try:
            profile = profile_of(option)
            profile = replace(profile, laws=tuple(option.gradspec_laws) or profile.laws)
            pairs, laws = resolve_all(targets), select_laws(profile.laws)
            checks = select_checks(pairs, laws, profile)
            there = kept(Path(option.gradspec_record)) if option.gradspec_record else ()
            refuse_twins(((spec.name, path, spec) for path, spec in pairs), there, record=option.gradspec_record)
        except (LawError, TargetError) as error:
            raise pytest.UsageError(f"gradspec: {' '.join(str(error).split())}") from None
        report = known = None
        if option.gradspec_record:
            paths = {spec.name: path for path, spec in pairs}
            report = blank([spec for _, spec in pairs], laws, profile, paths=paths)
            from gradspec._engine._reuse import known_of

            known = known_of(there, report)
        return cls(pairs, checks, profile, report, known)


def profile_of(option: Any) -> Profile:
    """Return the profile that the options name, with the scopes and the limit that they give.

    Raises:
        ProfileError: there is none of its name, or it cannot be used.
        ScopeError: a scope does not exist.
    """
    from gradspec._scope import scopes_of
    from gradspec.profile import load_profile

    scopes = () if option.gradspec_scope is None else scopes_of(option.gradspec_scope)
    return load_profile(option.gradspec_profile, time_limit=option.gradspec_time_limit, scopes=scopes)


def refuse_settings(config: pytest.Config) -> None:
    """Refuse, before anything is collected, a profile, a scope or a limit that cannot be used.

    Raises:
        UsageError: one of those that were given.
    """
    option = config.option
    if (option.gradspec_profile, option.gradspec_scope, option.gradspec_time_limit) == ("quick", None, None):
        return  # torch and all of gradspec are not imported for it
    from gradspec._scope import ScopeError
    from gradspec.profile import ProfileError

    try:
        profile_of(option)
    except (ProfileError, ScopeError) as error:
        raise pytest.UsageError(f"gradspec: {' '.join(str(error).split())}") from None


def refuse_unread_pipe(config: pytest.Config) -> None:
    """Refuse, before anything runs, a pipe for the record that nobody reads.

    Raises:
        UsageError: it cannot be opened.
    """
    from gradspec._record import is_device, opened

    path = Path(config.option.gradspec_record)
    if is_device(path):
        try:
            # It stays open until the end: the reader of a pipe would take a close for the end of the record.
            config.add_cleanup(partial(os.close, opened(path)))
        except OSError as error:
            why = f"the record {path} cannot be written ({error.strerror})"
            raise pytest.UsageError(f"gradspec: {why}: give the path of a file") from None


def kept(path: Path) -> tuple[Report, ...]:
    """Return the reports that a file holds, if there is one that can be read."""
    from gradspec.report import RecordError, read_records

    with contextlib.suppress(RecordError):  # the keeper says why
        return read_records(path)
    return ()
