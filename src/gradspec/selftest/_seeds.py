"""Sound functions under many seeds: how often a law is wrong about one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from gradspec._verify import verify
from gradspec.functions import FUNCTIONS
from gradspec.law import Law
from gradspec.laws import LAWS
from gradspec.profile import Profile, load_profile
from gradspec.promise import Spec
from gradspec.selftest.specimens import HONEST


def sweep(
    count: int,
    *,
    specs: Sequence[Spec] = (),
    laws: Sequence[Law] = (),
    profile: Profile | None = None,
    minutes: float = math.inf,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Hold sound functions to the laws under the seeds 0, 1, 2 ...

    Args:
        count: how many seeds.
        specs: the functions; those documented here, and the sound specimens, unless told.
        laws: all of them unless told.
        profile: how hard; `quick` unless told.
        minutes: when to stop; the seed that is running is finished.
        progress: called after each seed.

    Returns:
        `asked` and `run`, numbers of seeds; `specs` and `laws`, names; `verdicts`, how many there were; `failures`, a
        line for each that is broken, inconclusive or an error.
    """
    specs = specs or tuple({spec.name: spec for spec in (*FUNCTIONS, *HONEST)}.values())
    laws, profile = laws or LAWS, profile or load_profile("quick")
    failures: list[str] = []
    end, run, verdicts = time.monotonic() + 60 * minutes, 0, 0
    for seed in range(count):
        if run and time.monotonic() > end:
            break
        report = verify(specs, laws, profile, seed=seed)
        run, verdicts = run + 1, verdicts + len(report.verdicts)
        failures += [f"seed {seed}: {v.spec} · {v.law} · {v.case}: {v.finding.message}" for v in report.failures]
        if progress:
            progress(run, count, f"seed {seed}")
    return {
        "asked": count,
        "run": run,
        "specs": [spec.name for spec in specs],
        "laws": [law.name for law in laws],
        "verdicts": verdicts,
        "failures": failures,
    }
