"""A test function of the user's that becomes a test for each spec, law and case."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gradspec_pytest._group import Group
from gradspec_pytest._hold import Held
from gradspec_pytest._run import profile_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradspec.law import Law
    from gradspec.spec import Spec


def parametrize_with_laws(
    specs: Sequence[Spec] | Spec, laws: Sequence[Law | str] | None = None
) -> pytest.MarkDecorator:
    """Make of a test function one test for each spec, law and case; its argument `check` is called to run it.

    The options `--gradspec-profile` and `--gradspec-law` say which laws, and how hard.

    Args:
        specs: what is verified, several or one; their names are unique.
        laws: the laws to choose from, or the names of ours; ours, and those of installed packages, unless given.

    Example:
        >>> from gradspec_pytest import parametrize_with_laws
        >>> from gradspec.functions import FUNCTIONS
        >>> @parametrize_with_laws(FUNCTIONS)
        ... def test_laws(check):
        ...     check()
    """
    from gradspec.spec import Spec

    return pytest.mark.gradspec_laws((specs,) if isinstance(specs, Spec) else tuple(specs), laws)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the test functions that `parametrize_with_laws` decorates."""
    marker = metafunc.definition.get_closest_marker("gradspec_laws")
    if marker is None:
        return
    from gradspec._engine._named import laws_of
    from gradspec._engine._plan import plan
    from gradspec._engine._session import Session
    from gradspec._registry._laws import LawError, laws, select_laws

    option = metafunc.config.option
    specs, given = marker.args
    why = ""
    try:
        given = laws_of(given) if given else None
        profile = profile_of(option)
        profile = replace(profile, laws=tuple(option.gradspec_laws) or profile.laws)
        select_laws(profile.laws, given)  # refuses a name that no law has
        checks = plan(specs, given or laws(), profile)
    except (LawError, TypeError, ValueError) as error:
        why = f"gradspec: {' '.join(str(error).split())}"
    if why:
        pytest.fail(why, pytrace=False)
    session = Session(checks, profile)
    metafunc.config.add_cleanup(session.close)
    of_spec = {spec.name: [check for check in checks if check.spec is spec] for spec in specs}
    groups = {name: Group(session.run, mine, profile) for name, mine in of_spec.items()}
    metafunc.parametrize(
        "check",
        [Held(group=groups[check.spec.name], check=check) for check in checks],
        ids=[f"{check.spec.name}::{check.law.name}[{check.case}]" for check in checks],
    )
