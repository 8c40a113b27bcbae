"""A fork while calls are in flight: the child never waits for what only the parent gets."""

import asyncio
import os
import select
import signal
import threading
import time
import traceback

import pytest

from gradspec.text import Variable, concurrency, ops
from gradspec.text.lm import Budget, Client, Completion, Usage

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def in_a_fork(call):
    """Return what a call prints in a forked child, as text; fail if it does not end."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = call()
        except BaseException:
            said = traceback.format_exc()
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)
    ended = select.select([reads], [], [], 10)[0]
    if not ended:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reads, encoding="utf-8") as pipe:
        said = pipe.read()
    assert ended, "the child hangs"
    return said


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


def asks(gate):
    def model(messages):
        if messages[-1].content == "wait":
            gate.wait(20)
        return "answer"

    return model


def test_a_value_in_flight_is_an_error_in_the_child_and_comes_in_the_parent(gate):
    with concurrency(2):
        answer = ops.chat(asks(gate), Variable("wait", requires_grad=True))
        assert "comes only in the parent; read it" in in_a_fork(lambda: answer.data)
        gate.set()
        assert answer.data == "answer"


def test_what_needs_a_value_in_flight_is_an_error_in_the_child(gate):
    model = asks(gate)
    with concurrency(2):
        answer = ops.chat(model, Variable("wait", requires_grad=True))

        def backward():
            ops.chat(model, answer + "!").backward(Variable("shorter"))
            return "no error"

        assert "comes only in the parent" in in_a_fork(lambda: ops.chat(model, answer).data)
        assert "comes only in the parent" in in_a_fork(backward)
        assert "comes only in the parent" in in_a_fork(lambda: asyncio.run(answer.ready()).data)
        gate.set()


def test_the_child_reads_what_was_there_and_makes_calls_of_its_own(gate):
    model = asks(gate)
    with concurrency(2):
        there, lost = ops.chat(model, Variable("now")), ops.chat(model, Variable("wait"))
        while not there._pending.future.done():
            time.sleep(0.001)

        def child():
            return f"{there.data} {[ops.chat(model, Variable(f'{i}')).data for i in range(4)]}"

        assert in_a_fork(child) == f"answer {['answer'] * 4}"
        gate.set()
        assert lost.data == "answer"


def test_the_end_of_the_block_in_the_child_says_what_is_lost(gate):
    block = concurrency(2)
    block.__enter__()
    ops.chat(asks(gate), Variable("wait"))
    said = in_a_fork(lambda: str(block.__exit__(None, None, None)))
    gate.set()
    block.__exit__(None, None, None)
    assert "comes only in the parent" in said


def test_a_call_in_the_child_does_not_wait_for_the_reservations_of_the_parent(gate):
    def model(messages, **options):
        if messages[-1].content == "wait":
            gate.wait(20)
        return Completion(text="answer", usage=Usage(prompt_tokens=10, completion_tokens=1))

    client = Client(model, budget=Budget(tokens=200), options={"max_tokens": 5})
    running = threading.Thread(target=client, args=("wait",))
    running.start()
    while client.budget.calls == 0:
        time.sleep(0.001)
    assert "BudgetError" in in_a_fork(lambda: client("now").text)
    gate.set()
    running.join()
