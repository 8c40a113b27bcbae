"""Who is cancelled pays for nothing more, and leaves no error behind that asyncio would print."""

import asyncio
import gc
import threading

import pytest

from gradspec.text import Variable, ops
from gradspec.text.lm import Cache, Client, Retry

WAYS_BACK = "Say in a few sentences"


async def cancelled_backward(model, begun):
    """Cancel a backward pass of four calls once they are under way."""
    prompts = [Variable("a", role="prompt", requires_grad=True) for _ in range(4)]
    total = ops.sum([await ops.achat(model, prompt) for prompt in prompts])
    task = asyncio.create_task(total.backward_async(Variable("shorter"), max_concurrency=4))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [prompt.grad for prompt in prompts] == [None] * 4


@pytest.mark.parametrize("around", [lambda model: model, Client], ids=["bare", "in a client"])
def test_a_cancelled_backward_cancels_the_async_calls_that_run(around):
    begun, ended = threading.Barrier(5), []

    async def model(messages, **options):
        if WAYS_BACK not in messages[-1].content:
            return "answer"
        try:
            await asyncio.to_thread(begun.wait)
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def program():
        await cancelled_backward(around(model), begun)
        while len(ended) < 4:  # the calls are on the loop of another thread
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(program(), 20))
    assert ended == ["cancelled"] * 4


def test_a_cancelled_backward_makes_no_further_attempt():
    begun, go_on, calls = threading.Barrier(5), threading.Event(), []

    def model(messages, **options):
        if WAYS_BACK not in messages[-1].content:
            return "answer"
        calls.append(threading.current_thread())
        begun.wait()
        go_on.wait()
        raise ConnectionResetError

    async def program():
        await cancelled_backward(Client(model, retry=Retry(first_delay=0.0)), begun)
        go_on.set()
        for thread in [*calls]:
            await asyncio.to_thread(thread.join)

    asyncio.run(asyncio.wait_for(program(), 20))
    assert len(calls) == 4


def complaints_of(program):
    """Return what asyncio would print in a program."""
    found = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: found.append(context["message"]))
        await program()
        await asyncio.sleep(0.01)
        gc.collect()

    asyncio.run(main())
    return found


async def cancel(coroutine):
    task = asyncio.create_task(coroutine)
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def never(messages, **options):
    await asyncio.sleep(30)


def test_a_cancelled_achat_leaves_no_error_behind():
    assert complaints_of(lambda: cancel(ops.achat(never, Variable("a", requires_grad=True)))) == []


def test_who_stops_waiting_for_a_reply_that_another_gets_leaves_no_error_behind():
    async def program():
        async def fails(messages, **options):
            await asyncio.sleep(0.05)
            raise ValueError("mine")

        client = Client(fails, name="m", cache=Cache(":memory:"))
        leader = asyncio.create_task(client.acall("a"))
        await asyncio.sleep(0.01)
        await cancel(client.acall("a"))
        with pytest.raises(ValueError, match="mine"):
            await leader

    assert complaints_of(program) == []
