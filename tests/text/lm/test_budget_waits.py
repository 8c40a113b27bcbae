"""Calls at once complete where calls one after the other do: they wait for the reservations in flight."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gradspec.text.lm import Budget, BudgetError, Cache, Client, Completion, ModelTimeoutError, Retry, Usage

COST = 13


def reply():
    return Completion(text="ok", usage=Usage(prompt_tokens=COST - 1, completion_tokens=1))


async def slow(messages, **options):
    await asyncio.sleep(0.01)
    return reply()


def client_of(budget, model=slow, **settings):
    return Client(model, budget=budget, options={"max_tokens": 5}, **settings)


def kept_in(folder):
    return Budget(tokens=500, kept=Cache(folder / "replies.sqlite3"))


@pytest.mark.parametrize("at_once", [1, 64])
@pytest.mark.parametrize("make", [lambda _: Budget(tokens=500), kept_in], ids=["in memory", "kept"])
def test_as_many_threads_as_you_like_complete(make, at_once, tmp_path):
    budget = make(tmp_path)
    with ThreadPoolExecutor(at_once) as threads:
        found = list(threads.map(client_of(budget), ["question"] * 25))
    assert len(found) == 25
    assert (budget.calls, budget.tokens) == (25, 25 * COST)


def test_as_many_tasks_as_you_like_complete():
    budget = Budget(tokens=500)

    async def all_at_once():
        return await asyncio.gather(*(client_of(budget).acall("question") for _ in range(25)))

    assert len(asyncio.run(all_at_once())) == 25
    assert (budget.calls, budget.tokens) == (25, 25 * COST)


def test_what_no_wait_can_help_is_refused_while_others_run():
    budget = Budget(tokens=500)
    begun, end = threading.Event(), threading.Event()

    def held(messages, **options):
        begun.set()
        end.wait()
        return reply()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(client_of(budget, held), "question")
        begun.wait()
        try:
            with pytest.raises(BudgetError, match="may cost"):
                client_of(budget)("x" * 500)
        finally:
            end.set()
        assert running.result().text == "ok"
    assert (budget.calls, budget.tokens) == (1, COST)


def test_who_waits_is_refused_when_the_call_in_flight_was_dear():
    budget = Budget(tokens=200)  # one call may cost 109

    async def dear(messages, **options):
        await asyncio.sleep(0.02)
        return Completion(text="ok", usage=Usage(prompt_tokens=100, completion_tokens=5))

    async def both():
        client = client_of(budget, dear)
        return await asyncio.gather(client.acall("q"), client.acall("q"), return_exceptions=True)

    first, second = asyncio.run(both())
    assert first.text == "ok"
    assert isinstance(second, BudgetError)
    assert "95 of 200 are left" in str(second)
    assert (budget.calls, budget.tokens) == (1, 105)


@pytest.mark.parametrize(("tokens", "fits"), [(200, False), (500, True)])
def test_a_call_inside_of_a_call_does_not_wait_for_it(tokens, fits):
    budget = Budget(tokens=tokens)
    inner = client_of(budget)

    async def asks_again(messages, **options):
        return await inner.acall("inside")

    client = client_of(budget, asks_again, retry=Retry(deadline=5))
    if fits:
        assert client("outside").text == "ok"
    else:
        with pytest.raises(BudgetError):
            client("outside")


def test_a_plain_call_on_the_thread_of_a_loop_does_not_wait_for_the_tasks_of_that_loop():
    client = client_of(Budget(tokens=200))

    async def program():
        running = asyncio.ensure_future(client.acall("task"))
        await asyncio.sleep(0)
        with pytest.raises(BudgetError):
            client("plain")
        return await running

    assert asyncio.run(program()).text == "ok"


def test_who_stops_waiting_gives_its_place_up():
    budget = Budget(tokens=200)

    async def program():
        gate = asyncio.Event()

        async def held(messages, **options):
            await gate.wait()
            return reply()

        client = client_of(budget, held)
        tasks = [asyncio.ensure_future(client.acall(f"{i}")) for i in range(3)]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        await asyncio.sleep(0.01)
        gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = asyncio.run(program())
    assert (first.text, third.text) == ("ok", "ok")
    assert isinstance(second, asyncio.CancelledError)
    assert (budget.calls, budget.tokens) == (2, 2 * COST)


def test_a_place_that_came_too_late_is_given_back():
    budget = Budget(tokens=200)

    async def program():
        gate = asyncio.Event()

        async def held(messages, **options):
            await gate.wait()
            return reply()

        client = client_of(budget, held)
        first, second = (asyncio.ensure_future(client.acall(f"{i}")) for i in range(2))
        await asyncio.sleep(0.01)
        gate.set()
        await first
        second.cancel()  # it has its reservation, and has not begun
        await asyncio.gather(second, return_exceptions=True)

    asyncio.run(program())
    assert (budget.calls, budget.tokens) == (1, COST)


def test_a_wait_ends_at_the_deadline():
    budget = Budget(tokens=200)
    begun, end = threading.Event(), threading.Event()

    def held(messages, **options):
        begun.set()
        end.wait()
        return reply()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(client_of(budget, held), "question")
        begun.wait()
        try:
            with pytest.raises(ModelTimeoutError, match="too few tokens left before the deadline"):
                client_of(budget, retry=Retry(deadline=0.05))("question")
        finally:
            end.set()
        running.result()
    assert (budget.calls, budget.tokens) == (1, COST)
