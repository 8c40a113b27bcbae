"""A part of a run, for one of several machines: every part by itself, all of them together the whole."""

from __future__ import annotations

from collections.abc import Sequence

from gradspec._engine._parallel import COMPILATION
from gradspec._engine._plan import Check


def shard_of(checks: Sequence[Check], number: int, of: int) -> list[Check]:
    """Return the checks of one part of a run, the same on every machine.

    All laws of a case are in one part, as a law may require another one on its case. The heaviest case goes first, each
    to the part that has least; a check that compiles weighs as many others as it takes the time of.

    Args:
        checks: the whole run.
        number: which part, from 1.
        of: how many parts there are.
    """
    groups: dict[tuple[str, str], list[Check]] = {}
    for check in checks:
        groups.setdefault((check.spec.name, check.case), []).append(check)
    loads, mine = [0] * of, set[tuple[str, str]]()
    for key in sorted(groups, key=lambda key: -_weight(groups[key])):  # stable: of two as heavy, the earlier
        least = loads.index(min(loads))
        loads[least] += _weight(groups[key])
        if least == number - 1:
            mine.add(key)
    return [check for check in checks if (check.spec.name, check.case) in mine]


def _weight(checks: Sequence[Check]) -> int:
    return sum(COMPILATION if check.law.cost == "compile" else 1 for check in checks)
