"""The child process: what a check does to it is an answer, and the next check finds a new child."""

import importlib
import os
import pickle
import signal
import stat
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from multiprocessing.popen_fork import Popen

import pytest
import torch

from gradspec import audit, verify
from gradspec._engine._child import Child, available
from gradspec._engine._wire import send
from gradspec.functions import GRAD_FACTOR
from gradspec.law import HOLDS, Finding, Law, Status
from gradspec.laws import LAWS
from gradspec_lab.specimens import DISEASED

ANOTHER = "an answer to another question, or of another process"
HOLDING = Law(name="holding", family="values", statement="", check=lambda _: HOLDS, doc="")

pytestmark = pytest.mark.skipif(not available(), reason="no fork on this machine")


def misbehave(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 2:
        time.sleep(600)
    if number == 3:
        os._exit(7)
    return number


@pytest.fixture
def child():
    with Child(misbehave, time_limit=2) as child:
        yield child


def interrupt(number):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
    return number


def test_an_interrupt_that_reaches_a_child_is_no_finding_about_the_function():
    with Child(interrupt, time_limit=2) as child:
        assert [child.ask(number) for number in (1, 2)] == [1, 2]


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (1, Status.BROKEN, "the interpreter died of SIGSEGV"),
        pytest.param(2, Status.NOT_MEASURED, "no answer, and asleep for more than 2 s", marks=pytest.mark.slow),
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
    with Child(lambda _: os.getpid(), time_limit=20) as child:
        first, second = child.ask(0), child.ask(1)

    assert first == second != os.getpid()


def test_the_child_computes_after_the_parent_has_started_torchs_threads():
    large = torch.ones(600, 600)
    assert (large @ large).sum() > 0
    with Child(lambda _: float((large @ large).sum()), time_limit=20) as child:
        assert child.ask(0) == float((large @ large).sum())


def test_what_the_child_changes_stays_with_it():
    def change(_):
        torch.set_default_dtype(torch.float64)
        return str(torch.get_default_dtype())

    with Child(change, time_limit=20) as child:
        assert child.ask(0) == "torch.float64"
    assert torch.get_default_dtype() == torch.float32


def test_no_child_outlives_its_questions():
    with Child(lambda _: os.getpid(), time_limit=20) as child:
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
    with Child(misbehave, time_limit=5) as first, Child(misbehave, time_limit=5) as second:
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
        with Child(misbehave, time_limit=5) as inner:
            return inner.ask(number)

    with Child(ask_another, time_limit=10) as outer:
        assert outer.ask(5) == 5


@pytest.mark.parametrize("silent", [False, True])
def test_that_what_a_child_prints_reaches_stderr_unless_it_is_silent(silent, capfd):
    def speak(word):
        print(word)
        os.write(1, b"kernel\n")

    with Child(speak, time_limit=5, silent=silent) as child:
        child.ask("backward")

    assert capfd.readouterr() == ("", "" if silent else "backward\nkernel\n")


#: The sockets of processes that other tests keep, open before the test: on such bytes these would wait for ever.
OPEN = set()


@pytest.fixture(autouse=True)
def sockets_of_others():
    OPEN.update(sockets())
    yield
    OPEN.clear()


def sockets():
    for descriptor in range(3, 4096):  # a worker of pytest that has run much has many open
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                yield descriptor


def write_to_the_pipe(content):
    for descriptor in set(sockets()) - OPEN:
        with suppress(OSError):
            os.write(descriptor, content)


def answer(number, sender=0):
    """Write what looks like the answer of a process to a question of some number."""
    read, write = os.pipe()
    with monkeypatched_pid(sender or os.getpid()):
        send(write, number, pickle.dumps("wrong"))
    write_to_the_pipe(os.read(read, 1 << 10))


@contextmanager
def monkeypatched_pid(number):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: number)
        yield


def close_the_pipe():
    for descriptor in range(3, 4096):  # a worker of pytest that has run much has many open
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.close(descriptor)


def fork_and_come_back():
    os.fork()


LATE = []


def write_later():
    def late():
        time.sleep(0.3)
        write_to_the_pipe(b"late\n")

    LATE.append(threading.Thread(target=late))
    LATE[-1].start()


class Mute:
    def __reduce__(self):
        raise TypeError("no form to travel in")


def refuse_to_arrive():
    raise LookupError("nothing to make it of")


class Lost:
    def __reduce__(self):
        return refuse_to_arrive, ()


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        (lambda: write_to_the_pipe(b"kernel\n"), "on the pipe of the answers came bytes that are no answer"),
        (lambda: write_to_the_pipe(b"\0\0\0\0"), "on the pipe of the answers came bytes that are no answer"),
        (lambda: write_to_the_pipe(b"\xff" * 100_000), "on the pipe of the answers came bytes that are no answer"),
        (lambda: answer(1), f"on the pipe of the answers came {ANOTHER}"),
        (lambda: answer(2, sender=1), f"on the pipe of the answers came {ANOTHER}"),
        (close_the_pipe, "on the pipe of the answers came its end: the child could not send its answer"),
        (Mute, "the answer cannot leave the child process: TypeError: no form to travel in"),
        (Lost, "the answer cannot leave the child process: LookupError: nothing to make it of"),
    ],
    ids=[
        "text",
        "a length",
        "much",
        "an earlier answer",
        "a stranger's answer",
        "the end",
        "not picklable",
        "not unpicklable",
    ],
)
def test_that_what_is_no_answer_is_an_error_of_its_question_alone(deed, message):
    with Child(lambda number: deed() if number == 1 else number, time_limit=20) as child:
        assert child.ask(0) == 0
        finding = child.ask(1)
        assert (finding.status, finding.message) == (Status.ERROR, message)
        assert [child.ask(number) for number in (2, 3)] == [2, 3]


def test_that_a_function_that_comes_back_on_both_sides_of_a_fork_answers_once():
    with Child(lambda number: fork_and_come_back() or number, time_limit=20) as child:
        assert [child.ask(number) for number in range(5)] == list(range(5))


def test_that_a_code_which_another_thread_has_and_has_not_noted_yet_is_waited_for(child, monkeypatch):
    assert child.ask(0) == 0
    polled, poll = [], Popen.poll

    def late(self, flag=os.WNOHANG):
        polled.append(flag)
        return None if len(polled) < 4 else poll(self, flag)

    monkeypatch.setattr(Popen, "poll", late)
    child.close()
    assert child.ask(0) == 0


def test_that_no_child_can_write_to_another():
    with Child(str, time_limit=5) as quiet, Child(lambda _: write_to_the_pipe(b"kernel\n"), time_limit=5) as loud:
        assert quiet.ask(1) == "1"
        assert loud.ask(1).status is Status.ERROR
        assert quiet.ask(2) == "2"


def test_that_what_an_earlier_question_left_behind_writes_is_no_error_of_a_later_one():
    with Child(lambda number: write_later() if number == 0 else time.sleep(0.6) or number, time_limit=20) as child:
        child.ask(0)
        assert [child.ask(number) for number in (1, 2)] == [1, 2]


class SlowLock:
    """Holds a lock of torch in another thread for a while."""

    def __init__(self, lock):
        self.held = threading.Event()
        self.thread = threading.Thread(target=self.hold, args=(lock,))

    def hold(self, lock):
        with lock:
            self.held.set()
            time.sleep(0.5)

    def __enter__(self):
        self.thread.start()
        self.held.wait()

    def __exit__(self, *_):
        self.thread.join()


@pytest.mark.parametrize("lock", [torch.cuda._initialization_lock, torch._dynamo.convert_frame.compile_lock])
def test_that_no_child_is_forked_while_another_thread_holds_a_lock_of_torch(lock):
    def take(_):
        with lock:
            return "taken"

    with Child(take, time_limit=5) as child, SlowLock(lock):
        assert child.ask(0) == "taken"
    assert lock.acquire(timeout=60)
    lock.release()


def test_that_no_child_is_forked_while_another_thread_imports(tmp_path, monkeypatch):
    (tmp_path / "imported_slowly.py").write_text("import time\ntime.sleep(0.7)\nDONE = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    thread = threading.Thread(target=importlib.import_module, args=("imported_slowly",))
    with Child(lambda _: importlib.import_module("imported_slowly").DONE, time_limit=5) as child:
        thread.start()
        while "imported_slowly" not in sys.modules:
            time.sleep(0.01)
        assert child.ask(0) is True
    thread.join()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_that_where_there_is_no_fork_checks_run_here_and_what_needs_a_child_says_so(platform, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Child, "_fork", lambda _: pytest.fail("a fork"))
    here = []
    noticing = replace(HOLDING, check=lambda trial: here.append(os.getpid()) or HOLDS)
    apart = replace(HOLDING, name="apart", cost="process")

    report = verify([GRAD_FACTOR], [noticing, apart], jobs=2)

    assert not available()
    assert set(here) == {os.getpid()}
    assert {verdict.status for verdict in report.of(law="holding")} == {Status.HOLDS}
    assert {(verdict.status, verdict.finding.message) for verdict in report.of(law="apart")} == {
        (Status.NOT_MEASURED, "needs a child process, and this platform or device does not allow one")
    }


@pytest.mark.slow
@pytest.mark.parametrize("isolate", [None, False])
def test_that_runs_in_several_threads_wait_for_one_another(isolate):
    begun = []

    def check(_):
        time.sleep(0.05)
        return HOLDS

    def progress(*_):
        begun.append(threading.get_ident())

    def run():
        verify([GRAD_FACTOR], [replace(HOLDING, check=check)], isolate=isolate, jobs=1, progress=progress)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [len(list(group)) for _, group in groupby(begun)] == [len(begun) // 3] * 3


def test_that_a_graph_that_torch_prints_of_a_refused_export_is_dropped(capfd):
    disease = DISEASED["decides_by_a_value"]
    found = verify([disease.spec], [law for law in LAWS if law.name == "module_export"])

    assert {v.status for v in found.verdicts} == {Status.BROKEN}
    assert capfd.readouterr() == ("", "")


class OddError(BaseException):
    pass


@pytest.mark.parametrize("error", [OddError("odd one"), KeyboardInterrupt()], ids=["base", "interrupt"])
def test_what_a_function_raises_beside_exceptions_is_said_as_it_is(error):
    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise error

    (finding,) = [verdict.finding for verdict in audit(Raises, ["(randn(3),)"]).report.verdicts]
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    assert finding.message == f"raised {said}, in a plain call or its backward pass"
    assert "exit" not in finding.likely
