"""What a law says of a sound function is found out once, by whichever child process comes to it first."""

from __future__ import annotations

import pytest
import torch

from engine.test_audit import Reversed
from gradspec import audit
from gradspec.law import HOLDS, Finding, Status
from gradspec.laws import LAWS
from gradspec.laws.tensor.support import _calibration

LAW = next(law for law in LAWS if law.name == "compile_grad")


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_calibration, "_FOUND", {})
    monkeypatch.setattr(_calibration, "_told", 0)


def finding() -> Finding:
    found = audit(Reversed, [(torch.tensor([0.5, -2.0], dtype=torch.float64), 0.5)], laws=[LAW])
    (verdict,) = found.report.of(law="compile_grad")
    return verdict.finding


def no_sound(form: object) -> None:
    raise AssertionError(f"a sound function of {form} is made")


@pytest.mark.slow
def test_what_one_child_has_found_no_other_computes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = finding()
    assert first.status is Status.NOT_PROMISED
    assert "a sound function of this form" in first.message
    assert {check for check, *_ in _calibration._FOUND} == {LAW.check}

    monkeypatch.setattr(_calibration, "sound", no_sound)
    assert finding() == first


def test_a_law_that_no_other_process_has_stays_where_it_is() -> None:
    _calibration._FOUND.update({(LAW.check,): HOLDS, (lambda trial: HOLDS,): HOLDS})
    told = _calibration.untold()
    _calibration._FOUND.clear()
    _calibration.learn(told)

    assert {(LAW.check,): HOLDS} == _calibration._FOUND
    assert _calibration.untold() == []
