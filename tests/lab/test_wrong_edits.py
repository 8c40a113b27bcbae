"""The campaign of wrong edits: what it draws is wrong, and what it calls right, absent or wrong is so."""

import pytest
import torch

from gradspec_lab.campaigns.wrong_edits import FITTING, Found, counted, draws, functions, gradients, judged

#: The laboratory runs its campaign; a part of these tests a change.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drawn():
    return list(draws(12, 5))


def test_each_edit_changes_a_gradient_and_the_same_seed_draws_the_same(drawn):
    for cls, call, kind, line, made in drawn:
        assert kind in FITTING
        assert line
        before, after = gradients(cls, call), gradients(made, call)
        assert any(not torch.allclose(before[k], after[k], rtol=1e-6, atol=1e-9) for k in before)
    assert [(one[0].__name__, *one[1:4]) for one in draws(12, 5)] == [(one[0].__name__, *one[1:4]) for one in drawn]


def test_there_are_twenty_functions_or_more():
    assert len(list(functions())) >= 20


def test_a_turned_sign_is_found_and_named(drawn):
    cls, call, kind, line, made = next(one for one in draws(40, 5) if one[2] == "sign")
    found = judged(cls, call, kind, line, made, reference=True)

    assert (found.found, found.cause) == (True, "right"), found


def test_a_sound_function_is_no_find():
    cls, call = next(functions())
    found = judged(cls, call, "sign", "", type("Same", (cls,), {}), reference=True)

    assert (found.found, found.cause, found.said) == (False, "absent", "")


def test_what_was_not_found_has_no_cause_to_count():
    one = {"function": "F", "line": "", "reference": True, "said": ""}
    some = [
        Found(**one, kind="sign", found=True, cause="right"),
        Found(**one, kind="sign", found=True, cause="wrong"),
        Found(**one, kind="mask", found=False, cause="absent"),
    ]
    whole = counted(some)

    assert {name: whole[name] for name in ("edits", "found", "right", "absent", "wrong")} == {
        "edits": 3,
        "found": 2,
        "right": 1,
        "absent": 0,
        "wrong": 1,
    }
    assert next(row for row in whole["kinds"] if row["kind"] == "mask")["found"] == 0
