"""A CUDA device that is lost to the process, on a machine that need not have one: what torch then raises is raised."""

from dataclasses import replace

import pytest
import torch

from gradspec import Case, FunctionSpec
from gradspec._audit._apart import apart
from gradspec._engine._plan import checks_of
from gradspec._engine._session import Session
from gradspec._held import unmoved
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.spec._kinds import maker_of

SAID = "CUDA error: device-side assert triggered"
ON_CUDA = replace(load_profile("quick"), device="cuda")


@pytest.fixture
def device(monkeypatch):
    """Return what loses the device: all that waits for it raises from then on."""
    lost = []

    def wait(_=None):
        if lost:
            raise torch.AcceleratorError(f"{SAID}\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    return lambda: lost.append(True)


def test_the_check_that_loses_the_device_says_so_and_no_other_one_is_run(device):
    calls = []

    def loses(x):
        calls.append(x)
        if len(calls) > 2:
            device()
        return 2 * x

    spec = FunctionSpec(
        name="loses",
        function=loses,
        primal=lambda x: 2 * x,
        surrogate=lambda x: 2 * x,
        wrt=("x",),
        cases=lambda make: iter([Case(name="two", args=(torch.ones(2, dtype=torch.float64),))]),
    )
    laws = [law for law in LAWS if law.name in ("primal", "vjp", "aliasing", "layout")]
    checks = checks_of([spec], laws, ON_CUDA, maker_of)
    with Session(checks, ON_CUDA) as session:
        found = [session.run(check).finding for check in checks]
    place = next(k for k, finding in enumerate(found) if finding.status is Status.ERROR)
    assert found[place].message == f"the device is lost to this process: {SAID}"
    assert [finding.status for finding in found[place + 1 :]] == [Status.NOT_MEASURED] * (len(found) - place - 1)
    assert {finding.message for finding in found[place + 1 :]} == {
        f"needs the device, which is lost since the law {checks[place].law.name}"
    }


def test_a_plain_call_that_loses_the_device_is_a_finding():
    def loses():
        raise torch.AcceleratorError(f"{SAID}\nFor debugging")

    assert apart(loses, ON_CUDA, 0).message == f"the device is lost to this process: {SAID}"


def test_what_cannot_be_put_back_on_a_lost_device_stays(monkeypatch):
    net = torch.nn.Linear(2, 2)

    def raises(*_):
        raise torch.AcceleratorError(SAID)

    with unmoved([(net,)]):
        monkeypatch.setattr("gradspec._held._equal", raises)
