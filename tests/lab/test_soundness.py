"""What a measurement of a cell is compared by: all of a verdict but its names and the command of a rerun."""

from __future__ import annotations

import json

from gradspec import verify
from gradspec.functions import FUNCTIONS
from gradspec.laws import LAWS
from gradspec_lab.campaigns.soundness import cell_of


def test_two_measurements_of_one_cell_differ_in_nothing_but_the_command():
    laws = [law for law in LAWS if law.name == "keyword_call"]
    (one, *_), (other, *_) = (
        json.loads(verify(FUNCTIONS[:1], laws, seed=seed).to_json())["verdicts"] for seed in (0, 1)
    )

    assert one != other
    assert cell_of(one) == cell_of(other)
    assert cell_of(one)[0] == (one["spec"], "keyword_call", one["case"])
    assert cell_of(one)[1]["status"] == "holds"
