"""Any callable is a model: plain or async, called from a thread or from an event loop."""

import asyncio
import contextvars
import subprocess
import sys
import threading
import time

import pytest

from gradspec.text import concurrency
from gradspec.text.lm import Client, Completion, Message, Usage, acomplete, as_messages, complete, is_async
from gradspec.text.ops import chat


def plain(messages, **options):
    return f"{messages[-1].content}{options}"


async def coroutine(messages, **options):
    await asyncio.sleep(0)
    return Completion(text=f"{messages[-1].content}{options}")


class Dual:
    def __call__(self, messages, **options):
        return "called"

    async def acall(self, messages, **options):
        return "awaited"


class AsyncCallable:
    async def __call__(self, messages, **options):
        return f"{messages[-1].content}{options}"


@pytest.mark.parametrize("model", [plain, coroutine, AsyncCallable()], ids=["plain", "coroutine", "async __call__"])
def test_every_callable_is_a_model_in_both_worlds(model):
    expected = "hi{'temperature': 0}"
    assert complete(model, "hi", temperature=0).text == expected
    assert asyncio.run(acomplete(model, "hi", temperature=0)).text == expected


def test_a_model_with_acall_is_awaited_by_it():
    assert complete(Dual(), "hi").text == "called"
    assert asyncio.run(acomplete(Dual(), "hi")).text == "awaited"


def test_async_models_are_told_from_plain_ones():
    assert [is_async(m) for m in (plain, coroutine, AsyncCallable(), Dual())] == [False, True, True, False]


def test_plain_models_run_side_by_side_under_one_event_loop():
    barrier = threading.Barrier(40, timeout=20)  # more than asyncio's own pool has threads on two cores

    async def all_at_once():
        return await asyncio.gather(*(acomplete(lambda _: str(barrier.wait() >= 0), "x") for _ in range(40)))

    assert [c.text for c in asyncio.run(all_at_once())] == ["True"] * 40


def test_async_models_run_side_by_side_under_threads():
    together = asyncio.Barrier(8)

    async def meet(messages):
        async with asyncio.timeout(20):
            await together.wait()
        return messages[-1].content

    found = {}
    threads = [threading.Thread(target=lambda i=i: found.update({i: complete(meet, f"{i}").text})) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: f"{i}" for i in range(8)}


def test_a_thread_sees_the_callers_context():
    who = contextvars.ContextVar("who", default="nobody")

    async def ask():
        who.set("the caller")
        return await acomplete(lambda _: who.get(), "x")

    assert asyncio.run(ask()).text == "the caller"


def test_an_event_loop_is_not_held_up_by_a_plain_model():
    async def ticks_during_a_call():
        call = asyncio.ensure_future(acomplete(lambda _: time.sleep(0.2) or "done", "x"))
        ticks = 0
        while not call.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return ticks

    assert asyncio.run(ticks_during_a_call()) > 1


def test_errors_keep_their_type():
    async def broken(_):
        raise KeyError("mine")

    def also(_):
        raise KeyError("mine")

    for model in (broken, also):
        with pytest.raises(KeyError, match="mine"):
            complete(model, "x")
        with pytest.raises(KeyError, match="mine"):
            asyncio.run(acomplete(model, "x"))


def test_messages_come_in_three_forms():
    message = Message(role="user", content="hi")
    assert as_messages("hi") == as_messages([message]) == as_messages([{"role": "user", "content": "hi"}]) == (message,)


@pytest.mark.parametrize(
    ("messages", "error", "says"),
    [
        ([], ValueError, "at least one message; the list is empty"),
        (3, TypeError, "not a int"),
        ({"role": "user", "content": "hi"}, TypeError, "a list of messages, not a dict"),
        ([{"role": "user"}], TypeError, r"the keys \['role'\]"),
        (["hi"], TypeError, "this one is a str"),
        ([{"role": "robot", "content": "hi"}], ValueError, "not 'robot'"),
        ([{"role": "user", "content": ["hi"]}], TypeError, "not a list; pass the Variable's .data"),
    ],
)
def test_wrong_messages_are_named(messages, error, says):
    with pytest.raises(error, match=says):
        as_messages(messages)


def test_a_reply_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="this one returned a int"):
        complete(lambda _: 3, "x")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"text": None}, "the text of a Completion is a string, not None; write '' if it has none"),
        ({"text": ["hi"]}, "the text of a Completion is a string, not a list"),
        ({"text": "hi", "usage": (1, 2)}, "the usage of a Completion is a Usage or None, not a tuple; write Usage"),
    ],
)
def test_a_completion_that_cannot_be_is_refused_where_it_is_made(wrong, says):
    with pytest.raises(TypeError, match=says):
        Completion(**wrong)

    def model(messages):
        return Completion(**wrong)

    with pytest.raises(TypeError, match=says):
        Client(model)("hi")
    with concurrency(2), pytest.raises(TypeError, match=says):
        _ = chat(model, "hi").data


def test_usage_adds_up():
    assert Usage(prompt_tokens=3, completion_tokens=4).total == 7


def test_the_layer_needs_neither_torch_nor_a_client():
    code = (
        "import sys, gradspec.text.lm; "
        "print(sorted(m for m in ('torch', 'numpy', 'openai', 'httpx2', 'pydantic') if m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
