"""What our functions declare to keep for backward is what they keep, to the byte: a looser bound would hide a copy."""

from __future__ import annotations

import pytest

from gradspec._engine._flat import flattened
from gradspec.functions import FUNCTIONS
from gradspec.law import TrialOf
from gradspec.laws.tensor._saved_bytes import _kept
from gradspec.laws.tensor.support._call import Inputs
from gradspec.operators import OPERATORS
from gradspec.profile import load_profile
from gradspec.spec._maker import Maker

SPECS = (*FUNCTIONS, *OPERATORS)


def test_every_spec_of_ours_declares_what_it_keeps():
    missing = [spec.name for spec in SPECS if spec.saved is None]
    assert missing == [], (
        "a spec of ours needs `saved=Saved(...)`: `gradspec check --law saved_bytes` says how much it keeps"
    )


KEEPING = [spec for spec in SPECS if spec.saved is not None]


@pytest.mark.parametrize("spec", KEEPING, ids=lambda spec: spec.name)
def test_a_bound_is_what_is_kept(spec):
    kept, declared = {}, {}
    for case in spec.cases(Maker(0, "cpu")):
        trial = flattened(TrialOf(spec=spec, case=case, profile=load_profile("quick"), seed=0))
        inputs = Inputs.of(trial)
        if inputs.wrt:
            kept[case.name] = sum(tensor.untyped_storage().nbytes() for tensor in _kept(trial, inputs))
            declared[case.name] = spec.saved.bytes(*inputs.args())

    assert kept == declared
