"""A limit on an answer counts the CPU time of all that a child starts, and nothing that the machine does beside it."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gradspec import audit, verify
from gradspec._clock import _cpu, _process, _wants_a_processor, tree_of
from gradspec._engine._child import Child, available
from gradspec._heartbeat import beat
from gradspec.cli._output import exit_code
from gradspec.findings import judge
from gradspec.law import HOLDS, Finding, Law, Status
from gradspec.profile import load_profile
from gradspec_lab.specimens import SCALE

pytestmark = pytest.mark.skipif(not available(), reason="no fork on this machine")

COMPUTED = "no answer within 1 s of CPU time"
ASLEEP = "no answer, and asleep for more than 1 s"
BURN = [sys.executable, "-S", "-c", "while True: pass"]


def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return seconds


def poll():
    while True:
        time.sleep(0.05)


def orphan():
    """Start a process whose own parent ends at once, in a session of its own, and sleep."""
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.execv(BURN[0], BURN)
        os._exit(0)
    os.wait()
    time.sleep(600)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deed", "message"),
    [
        (lambda: compute(90), COMPUTED),
        (lambda: subprocess.run(BURN, check=False), COMPUTED),
        (orphan, COMPUTED),
        (lambda: time.sleep(90), ASLEEP),
        (poll, ASLEEP),
    ],
    ids=["computes", "starts a process that computes", "an orphan computes", "sleeps", "polls"],
)
def test_a_limit_that_runs_out_is_not_measured_and_nothing_is_left(deed, message):
    with Child(lambda number: deed() if number else os.getpid(), time_limit=1) as child:
        number, tree = child.ask(0), {}
        looking = threading.Timer(0.5, lambda: tree.update(tree_of(number)))
        looking.start()
        finding = child.ask(1)
        looking.join()

        assert isinstance(finding, Finding)
        assert (finding.status, finding.message, finding.details) == (Status.NOT_MEASURED, message, {"limit": "time"})
        assert "--time-limit" in finding.likely
        assert finding.is_cut_off
        assert number in tree
        # A process that was killed still has to be given a processor, in which it ends.
        for _ in range(600):
            if not (left := [one for one in tree if one in tree_of(one) and tree_of(one)[one].state != "Z"]):
                break
            time.sleep(0.1)
        assert not left


@pytest.mark.slow
def test_what_was_computed_for_earlier_questions_does_not_count():
    with Child(compute, time_limit=0.5) as child:
        assert [child.ask(0.3) for _ in range(4)] == [0.3] * 4


@pytest.fixture
def busy():
    """Eight processes that take from the others whatever they can."""
    loops = [subprocess.Popen(BURN) for _ in range(8)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.slow
def test_a_busy_machine_changes_nothing(busy):
    began = time.monotonic()
    with Child(compute, time_limit=1) as child:
        assert child.ask(0.8) == 0.8
        assert time.monotonic() - began > 1  # else the machine was not busy, and nothing was shown
        assert child.ask(90).message == COMPUTED


@pytest.mark.slow
@pytest.mark.parametrize("computes", [True, False])
def test_a_process_wants_a_processor_if_one_of_its_threads_does(busy, computes):
    program = f"""
import threading, time
def work():
    while True:
        time.sleep({0 if computes else 600})
threading.Thread(target=work, daemon=True).start()
time.sleep(600)
""".replace("time.sleep(0)", "pass")
    with subprocess.Popen([sys.executable, "-S", "-c", program]) as process:
        while len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 2 or (computes and _cpu(process.pid) < 0.5):
            time.sleep(0.05)
        while not computes and _wants_a_processor(process.pid, _process(process.pid)):
            time.sleep(0.05)
        seen = [_wants_a_processor(process.pid, found) for _ in range(5) if (found := _process(process.pid))]
        process.kill()

    assert seen == [computes] * 5


@pytest.mark.slow
def test_each_of_many_calls_has_the_limit_where_a_child_says_how_many_have_ended():
    def calls(_):
        for _ in range(4):
            compute(0.3)
            beat()
        return "ended"

    with Child(calls, time_limit=0.5, per_call=True) as child:
        assert child.ask(0) == "ended"
    with Child(calls, time_limit=0.5) as child:
        assert child.ask(0).message == COMPUTED.replace("1 s", "0.5 s")


def slow(x):
    return x + 0 * compute(0.05)


@pytest.mark.slow
def test_an_audit_has_a_limit_on_each_call():
    laws = [Law(name="holding", family="values", statement="", check=lambda _: HOLDS, doc="")]
    profile = replace(load_profile("quick"), time_limit=0.5)
    report = audit(slow, ["(randn(3),)"], laws=laws, profile=profile).report

    assert {verdict.status for verdict in report.verdicts} == {Status.HOLDS}


@pytest.mark.slow
@pytest.mark.parametrize(
    "deed",
    [lambda: time.sleep(90), pytest.param(lambda: compute(90), marks=pytest.mark.slow)],
    ids=["sleeps", "computes"],
)
def test_a_run_of_which_a_limit_kept_something_out_fails_with_2(deed):
    def check(_):
        deed()
        return HOLDS

    first = Law(name="first", family="values", statement="", check=check, doc="")
    second = replace(first, name="second", check=lambda _: HOLDS, requires=("first",))
    report = verify([SCALE], [first, second], replace(load_profile("quick"), time_limit=0.5), case="matrix", jobs=1)

    assert [verdict.status for verdict in report.verdicts] == [Status.NOT_MEASURED] * 2
    assert report.verdicts[1].finding.message == "needs the law first, whose limit ran out"
    assert report.failures == report.verdicts
    assert exit_code(judge(report)) == exit_code(judge(report), exit_zero=True) == 2
    assert exit_code(judge(report, baseline=report)) == 2


@pytest.mark.slow
def test_what_compiles_slowly_is_waited_for_once():
    plain = Law(name="plain", family="values", statement="", check=lambda _: HOLDS, doc="")
    first = replace(plain, name="first", cost="compile")
    second = replace(first, name="second", check=lambda _: compute(90))  # the last one runs first
    profile = replace(load_profile("quick"), time_limit=1)
    report = verify([SCALE], [plain, first, second], profile, case="matrix", jobs=1)

    assert [verdict.status for verdict in report.verdicts] == [Status.HOLDS, *[Status.NOT_MEASURED] * 2]
    said = "needs what the compiler makes, as the law second, whose limit ran out"
    assert report.verdicts[1].finding.message == said
