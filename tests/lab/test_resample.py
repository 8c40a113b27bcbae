"""A part of a record that is measured again is compared by what its checks say, and every difference is a line."""

from __future__ import annotations

from dataclasses import replace

from gradspec._engine._vacuous import settled
from gradspec._engine._verify import verify
from gradspec.functions import GRAD_FACTOR
from gradspec.law import Finding, Status
from gradspec.laws import LAWS
from gradspec_lab.evidence.resample import of_verdicts

(CHECKPOINT,) = (law for law in LAWS if law.name == "checkpoint")


def test_a_case_that_shows_nothing_by_itself_is_no_difference() -> None:
    kept = verify([GRAD_FACTOR], [CHECKPOINT], jobs=1)
    flat = [verdict for verdict in kept.verdicts if verdict.case == "factor 0"]
    alone = replace(kept, verdicts=settled(flat))
    assert [verdict.status for verdict in flat] == [Status.HOLDS]
    assert [verdict.status for verdict in alone.verdicts] == [Status.VACUOUS]
    assert list(of_verdicts("peers", kept, alone)) == []


def test_another_finding_is_a_difference() -> None:
    kept = verify([GRAD_FACTOR], [CHECKPOINT], jobs=1)
    first = kept.verdicts[0]
    other = replace(first, finding=Finding(status=Status.BROKEN, message="differs"))
    (line,) = of_verdicts("peers", kept, replace(kept, verdicts=(other,)))
    assert first.case in line
    assert "'differs'" in line
    new = replace(first, case="another")
    assert list(of_verdicts("peers", kept, replace(kept, verdicts=(new,)))) == [
        "peers: grad_factor · checkpoint · another is not in the record"
    ]
