"""Test a law of your own: it must hold on a sound function and catch a broken one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradspec._engine._verify import verify
from gradspec.law import Law, Status, Verdict
from gradspec.profile import Profile
from gradspec.render import words
from gradspec.spec import Spec

__all__ = ["assert_law"]


def assert_law(
    law: Law, *, sound: Spec, broken: Spec, match: str = "", profile: Profile | None = None, seed: int = 0
) -> None:
    """Assert that a law holds on a sound spec and catches a broken one.

    A law that has never failed may be unable to fail. Call this in a test of the law, once for each thing it finds.

    Args:
        law: the law to test.
        sound: the spec of a function that keeps the law. The law must compare something on one of its cases at least.
        broken: the spec of a function that breaks the law, on one of its cases at least.
        match: a regular expression that the message or the likely cause of that finding must contain, as
            `re.search` reads it.
        profile: the profile to run with. Default: `quick`.
        seed: the seed of all random numbers.

    Raises:
        AssertionError: the law cannot tell the two apart, or finds something else in the broken one.

    Example:
        >>> from dataclasses import replace
        >>> from gradspec.functions import GRAD_FACTOR
        >>> from gradspec.laws import LAWS
        >>> (primal,) = (law for law in LAWS if law.name == "primal")
        >>> doubled = replace(GRAD_FACTOR, name="doubled", primal=lambda x, f: 2 * x)
        >>> assert_law(primal, sound=GRAD_FACTOR, broken=doubled, match="differs")
    """
    kept, caught = (_verdicts(law, spec, profile, seed) for spec in (sound, broken))
    if wrong := [verdict for verdict in kept if verdict.status.is_failure]:
        raise AssertionError(f"{law.name} does not hold on {sound.name}, which is sound:\n{_listed(wrong)}")
    if not any(verdict.status is Status.HOLDS for verdict in kept):
        raise AssertionError(f"{law.name} compares nothing on {sound.name}:\n{_listed(kept)}")
    found = [verdict for verdict in caught if verdict.status is Status.BROKEN]
    if not found:
        only_holds = all(verdict.status is Status.HOLDS for verdict in caught)
        said = " every case holds" if only_holds else f"\n{_listed(caught)}"
        raise AssertionError(f"{law.name} lets {broken.name} pass, which breaks it:{said}")
    if not any(re.search(match, f"{verdict.finding.message}\n{verdict.finding.likely}") for verdict in found):
        raise AssertionError(f"{law.name} finds something else than {match!r} in {broken.name}:\n{_listed(found)}")


def _verdicts(law: Law, spec: Spec, profile: Profile | None, seed: int) -> list[Verdict]:
    if not law.judges(spec.kind):
        raise AssertionError(f"{law.name} does not judge a {spec.kind} such as {spec.name}: it judges {law.judged}")
    return [verdict for verdict in verify([spec], [law], profile, seed=seed).verdicts if verdict.law == law.name]


def _listed(verdicts: Sequence[Verdict]) -> str:
    """Return a line for each verdict, of one indent."""
    return "\n".join(": ".join(filter(None, (f"  {v.case}", words(v.status), v.finding.message))) for v in verdicts)
