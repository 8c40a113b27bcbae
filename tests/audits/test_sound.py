"""An audit of a sound function says nothing against it in plain training, and asks one question at most."""

from __future__ import annotations

import pytest

from audits.sound_functions import SOUND
from gradspec import audit
from gradspec.findings import judge
from gradspec.law import Rank, Scope, Status
from gradspec.laws import LAWS

TRAINING = [law for law in LAWS if law.scope is Scope.TRAINING and law.cost == "ms"]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_function_is_not_accused(name):
    function, case, is_asked = SOUND[name]
    found = audit(function, [case], laws=TRAINING, jobs=1)
    judgement = judge(found.report)
    told = [(one.found.verdict.law, one.found.rank, one.found.verdict.finding.message) for one in judgement.findings]

    assert not judgement.fails, told
    assert [one for one in told if one[1] not in (Rank.WASTE, Rank.LIMIT, Status.QUESTION, Status.VACUOUS)] == []
    assert len([one for one in told if one[1] is Status.QUESTION]) == int(is_asked), told
