"""The child process: what a check does to it is an answer, and the next check finds a new child."""

import os
import signal
import tempfile
import threading
import time

import pytest
import torch

from gradspec._engine._child import Child, available
from gradspec.law import Finding, Status

pytestmark = pytest.mark.skipif(not available(), reason="no fork on this machine")


def misbehave(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 2:
        time.sleep(60)
    if number == 3:
        os._exit(7)
    return number


@pytest.fixture
def child():
    with Child(misbehave, seconds=2) as child:
        yield child


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (1, Status.BROKEN, "the interpreter died of SIGSEGV"),
        (2, Status.ERROR, "no answer within 2 s"),
        (3, Status.BROKEN, "the function ended the interpreter, with exit code 7"),
    ],
)
def test_what_ends_the_child_is_a_finding_and_the_next_answer_comes(child, number, status, message):
    assert child.ask(0) == 0
    finding = child.ask(number)
    assert isinstance(finding, Finding)
    assert (finding.status, finding.message) == (status, message)
    if number == 1:
        assert "misbehave, test_isolation.py:" in finding.details["stack"]
    assert child.ask(4) == 4


def test_one_child_answers_many_questions():
    with Child(lambda _: os.getpid(), seconds=20) as child:
        first, second = child.ask(0), child.ask(1)

    assert first == second != os.getpid()


def test_the_child_computes_after_the_parent_has_started_torchs_threads():
    large = torch.ones(600, 600)
    assert (large @ large).sum() > 0
    with Child(lambda _: float((large @ large).sum()), seconds=20) as child:
        assert child.ask(0) == float((large @ large).sum())


def test_what_the_child_changes_stays_with_it():
    def change(_):
        torch.set_default_dtype(torch.float64)
        return str(torch.get_default_dtype())

    with Child(change, seconds=20) as child:
        assert child.ask(0) == "torch.float64"
    assert torch.get_default_dtype() == torch.float32


def test_no_child_outlives_its_questions():
    with Child(lambda _: os.getpid(), seconds=20) as child:
        pid = child.ask(0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_that_a_death_is_seen_though_another_child_was_forked_meanwhile(monkeypatch):
    between, forked = threading.Event(), threading.Event()

    def slow():  # the pipe of the first child is open, and it is not forked yet
        if threading.current_thread() is not threading.main_thread():
            between.set()
            forked.wait(1)
        return temporary_file()

    temporary_file = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", slow)
    with Child(misbehave, seconds=5) as first, Child(misbehave, seconds=5) as second:
        thread = threading.Thread(target=first.start)
        thread.start()
        between.wait()
        second.start()
        forked.set()
        thread.join()

        assert first.ask(1).message == "the interpreter died of SIGSEGV"
        assert second.ask(0) == 0


def test_that_a_child_may_have_a_child():
    def ask_another(number):
        with Child(misbehave, seconds=5) as inner:
            return inner.ask(number)

    with Child(ask_another, seconds=10) as outer:
        assert outer.ask(5) == 5


@pytest.mark.parametrize("silent", [False, True])
def test_that_what_a_child_prints_reaches_stderr_unless_it_is_silent(silent, capfd):
    def speak(word):
        print(word)
        os.write(1, b"kernel\n")

    with Child(speak, seconds=5, silent=silent) as child:
        child.ask("backward")

    assert capfd.readouterr() == ("", "" if silent else "backward\nkernel\n")
