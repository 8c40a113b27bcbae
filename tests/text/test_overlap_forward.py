"""Forward calls overlap: the same graph and replies as one after the other, in less time; errors are not lost."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
import re
import threading
import time
import weakref

import pytest

from gradspec.text import Variable, concurrency, gather, ops
from gradspec.text.lm import Client, OpenAIModel
from gradspec.text.ops import achat, chat, exact_match, judge
from text.lm.server import Server


class Slow:
    """A model that answers by a hash of what it is asked, after a while that a seed decides."""

    def __init__(self, seed: int = 0, longest: float = 0.0) -> None:
        self.draw, self.longest = random.Random(seed), longest
        self.lock, self.now, self.peak, self.calls = threading.Lock(), 0, 0, 0

    def __call__(self, messages, **options):
        with self.lock:
            self.now += 1
            self.calls += 1
            self.peak = max(self.peak, self.now)
            pause = self.draw.uniform(0, self.longest)
        time.sleep(pause)
        with self.lock:
            self.now -= 1
        said = "|".join(message.content for message in messages)
        return f"<score>0.{len(said) % 10}</score> {len(said)} {said[:12]}"


def leaf(text: str) -> Variable:
    return Variable(text, role=text, requires_grad=True)


def program(model):
    """Return leaves and a loss: chains of calls, joined, filled, judged."""
    leaves = [leaf(f"prompt {i}") for i in range(6)]
    ends = []
    for x in leaves:
        first = chat(model, x, role="first")
        second = chat(model, [{"role": "user", "content": ["Fix: ", first]}, {"role": "user", "content": leaves[0]}])
        filled = ops.fill("{a} and {b}", a=second, b=first)
        ends.append(chat(model, filled + "!", role="end"))
    _, explanation = judge(model, "task", ends[0], votes=3)
    return leaves, ops.join([chat(model, ops.sum(ends)), explanation, chat(model, ends[3])], "; ")


def told(leaves):
    return [x.grad and [x.grad.data, [str(part) for part in x.grad.parts]] for x in leaves]


def sequential():
    leaves, loss = program(Slow())
    loss.backward(Variable("shorter"))
    return loss.data, told(leaves)


def test_sixteen_calls_take_the_time_of_one() -> None:
    together = threading.Barrier(16)

    def model(messages):
        together.wait(timeout=20)
        return messages[-1].content.upper()

    with concurrency(16):
        answers = [chat(model, Variable(f"a{i}", requires_grad=True)) for i in range(16)]
    assert [answer.data for answer in answers] == [f"A{i}" for i in range(16)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limit", [2, 3, 64])
def test_the_sequential_program_to_the_byte(limit, seed) -> None:
    model = Slow(seed, 0.004)
    with concurrency(limit):
        leaves, loss = program(model)
        loss.backward(Variable("shorter"))
    assert (loss.data, told(leaves)) == sequential()
    assert 1 < model.peak <= limit


def test_a_chain_does_not_hold_up_another_one() -> None:
    second = threading.Event()

    def model(messages):
        if messages[-1].content == "slow":
            assert second.wait(20)  # until the other chain has come to its second call
        if messages[-1].content == "A":
            second.set()
        return messages[-1].content.upper()

    with concurrency(2):
        slow = chat(model, leaf("slow"))
        quick = chat(model, chat(model, leaf("a")))
    assert (slow.data, quick.data) == ("SLOW", "A")


def test_what_is_assigned_after_the_call_changes_nothing_in_it() -> None:
    go = threading.Event()

    def model(messages):
        go.wait(20)
        return messages[-1].content

    with concurrency(2):
        x, many = leaf("old"), Variable(["a", "b"])
        first = chat(model, x)
        second = chat(model, first)
        batch = chat(model, many)
        x.data = first.data = "new"
        many.data.append("c")
        go.set()
    assert (first.data, second.data, batch.data) == ("new", "old", ["a", "b"])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        second.backward(Variable("g"))


def test_an_error_is_raised_where_it_is_read() -> None:
    def model(messages):
        raise ConnectionError(messages[-1].content)

    with concurrency(4):
        answer = chat(model, leaf("a"))
        after = chat(model, answer)
        for _ in range(2):
            with pytest.raises(ConnectionError, match="a"):
                _ = after.data
        with pytest.raises(ConnectionError, match="a"):
            after.backward(Variable("g"))


def test_an_error_that_nobody_has_read_is_raised_at_the_end_of_the_block() -> None:
    def model(messages):
        raise ConnectionError(messages[-1].content)

    with pytest.raises(ConnectionError, match="first"), concurrency(4):
        answers = [chat(model, leaf("first")), chat(model, leaf("second"))]
    assert len(answers) == 2


def test_after_an_error_of_the_program_nothing_starts_and_what_runs_is_waited_for() -> None:
    begun, ended = [], []

    def model(messages):
        begun.append(1)
        time.sleep(0.2)
        ended.append(1)
        return "a"

    with pytest.raises(KeyError), concurrency(2):  # noqa: PT012 -- the block is what raises
        kept = [chat(model, leaf(f"{i}")) for i in range(20)]
        while len(begun) < 2:
            time.sleep(0.001)
        raise KeyError
    assert (len(begun), len(ended), len(kept)) == (2, 2, 20)


def test_a_call_that_reads_what_another_one_answers_does_not_wait_for_ever() -> None:
    def model(messages):
        time.sleep(0.02)
        return messages[-1].content

    with concurrency(2):
        base = chat(model, chat(model, chat(model, leaf("a"))))
        scores = [ops.evaluate(lambda p, t: (0.0, f"{base.data}{p}"), leaf(f"{i}"), "")[1] for i in range(6)]
    assert [score.data for score in scores] == [f"a{i}" for i in range(6)]


def test_a_long_chain_is_no_deep_stack() -> None:
    def model(messages):
        time.sleep(0.05)
        return "a"

    with concurrency(2):
        x = chat(model, leaf("a"))
        for _ in range(5000):
            x = x + "b"
    assert x.data == "a" + "b" * 5000


def test_evaluators_overlap_too() -> None:
    together = threading.Barrier(4)

    def model(messages):
        together.wait(timeout=20)
        return "<score>0.5</score>"

    with concurrency(4):
        scores = [judge(model, "task", leaf(f"{i}"))[0] for i in range(4)]
    assert [score.data for score in scores] == [0.5] * 4
    total = ops.sum(scores)
    total.backward()
    assert total.data == 2.0


def test_votes_of_a_judge_overlap() -> None:
    together = threading.Barrier(10)

    def model(messages):
        together.wait(timeout=20)
        return "<score>0.5</score>"

    with concurrency(16):
        score, _ = judge(model, "task", Variable(["a", "b"]), votes=5)
    assert score.data == 0.5


class Voter(Client):
    """Tells the server which vote it is asked for, as a seed: the sample is known to the cache alone."""

    def __call__(self, messages, *, sample=0, **options):
        return super().__call__(messages, sample=sample, seed=sample, **options)


def vote(body) -> str:
    """Return another score for each prediction and vote; one answer has none, and is asked for once more."""
    place, seed = "abcd".index(re.search(r"<prediction>\n(.)", body["messages"][0]["content"]).group(1)), body["seed"]
    if (place, seed, len(body["messages"])) == (1, 2, 1):
        return "no score"
    return f"{place} {seed} <score>0.{(7 * place + 3 * seed) % 10}</score>"


def voted(limit: int):
    """Return scores, explanations and feedback, what the server was asked, and how many calls were in flight there."""
    with Server(delay=0.05, reply=vote) as server:
        answers = Variable(list("abcd"), role="answers", requires_grad=True)
        with concurrency(limit):
            client = Voter(OpenAIModel("echo", base_url=server.url))
            score, explanation = judge(client, "task", answers, votes=5, reduction=lambda scores: scores[1])
        score.backward()
    told = score.data, explanation.data, answers.grad.data
    return told, sorted(json.dumps(body, sort_keys=True) for body in server.requests), server.peak


@pytest.mark.slow
@pytest.mark.parametrize("limit", [2, 16])
def test_votes_are_those_of_the_sequential_program_and_keep_to_the_limit(limit) -> None:
    *sequential, alone = voted(1)
    *overlapping, together = voted(limit)
    assert overlapping == sequential
    assert len(sequential[1]) == 4 * 5 + 1
    assert alone == 1
    assert 1 < together <= limit


def test_a_batch_is_one_call_for_each_place() -> None:
    model = Slow(0, 0.01)
    with concurrency(3):
        answers = chat(model, Variable(["a", "b", "c", "d"], requires_grad=True))
        score, explanation = exact_match(answers, "x")
    assert (len(answers.data), len(explanation.data), score.data, model.peak) == (4, 4, 0, 3)


def test_nothing_is_kept_alive() -> None:
    gc.collect()
    gc.disable()
    try:
        with concurrency(4):
            x = leaf("a")
            y = chat(Slow(), chat(Slow(), x))
            z = ops.sum([y, x])
        z.backward(Variable("g"))
        dead = [weakref.ref(v) for v in (x, y, z)]
        time.sleep(0.05)
        del x, y, z
        assert [ref() for ref in dead] == [None] * 3
    finally:
        gc.enable()


def test_threads_end_with_the_block() -> None:
    before = threading.active_count()
    with concurrency(32):
        kept = [chat(Slow(0, 0.01), leaf(f"{i}")) for i in range(64)]
    assert (threading.active_count(), len(kept)) == (before, 64)


def test_a_running_loop_is_not_held_up() -> None:
    async def main():
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                await asyncio.sleep(0.005)
                beats += 1

        task = asyncio.create_task(beat())
        answer = chat(Slow(0, 0.0), leaf("a"))
        slow = chat(lambda messages: time.sleep(0.2) or "slow", answer)
        assert await slow.ready() is slow
        task.cancel()
        return beats, slow.data

    beats, text = asyncio.run(main())
    assert (beats > 5, text) == (True, "slow")


def test_on_a_loop_an_error_that_nobody_reads_is_logged(caplog) -> None:
    async def main():
        chat(lambda messages: 1 / 0, leaf("a"))
        await asyncio.sleep(0.1)
        gc.collect()

    with caplog.at_level(logging.ERROR, logger="gradspec.text"):
        asyncio.run(main())
    assert "nobody read what it returned: ZeroDivisionError" in caplog.text


async def achain(model, x, shared):
    first = await achat(model, x, role="first")
    second = await achat(model, [{"role": "user", "content": ["Fix: ", first]}, {"role": "user", "content": shared}])
    return await achat(model, ops.fill("{a} and {b}", a=second, b=first) + "!", role="end")


def chain(model, x, shared):
    first = chat(model, x, role="first")
    second = chat(model, [{"role": "user", "content": ["Fix: ", first]}, {"role": "user", "content": shared}])
    return chat(model, ops.fill("{a} and {b}", a=second, b=first) + "!", role="end")


@pytest.mark.parametrize("seed", range(6))
def test_gather_makes_the_graph_of_the_sequential_program(seed) -> None:
    leaves = [leaf(f"prompt {i}") for i in range(6)]
    loss = ops.sum([chain(Slow(), x, leaves[0]) for x in leaves])
    loss.backward(Variable("shorter"))
    draw = random.Random(seed)

    async def model(messages):
        await asyncio.sleep(draw.uniform(0, 0.01))
        return Slow()(messages)

    async def main():
        others = [leaf(f"prompt {i}") for i in range(6)]
        half = gather(*(achain(model, x, others[0]) for x in others[:3]))
        rest = gather(*(achain(model, x, others[0]) for x in others[3:]))
        ends = [end for ends in await gather(half, rest) for end in ends]
        total = ops.sum(ends)
        await total.backward_async(Variable("shorter"), max_concurrency=8)
        return total.data, told(others)

    assert asyncio.run(main()) == (loss.data, told(leaves))


def test_gather_raises_the_error_and_leaves_nothing_running() -> None:
    ended = []

    async def model(messages):
        if messages[-1].content == "bad":
            raise ConnectionError("gone")
        try:
            await asyncio.sleep(20)
        finally:
            ended.append(1)

    async def main():
        with pytest.raises(ConnectionError, match="gone"):
            await gather(achat(model, "slow"), achat(model, "bad"))
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    assert ended == [1]


def test_achat_keeps_to_the_limit_of_the_block() -> None:
    now = peak = 0

    async def model(messages):
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0.005)
        now -= 1
        return "a"

    async def main(limit):
        nonlocal peak
        peak = 0
        with concurrency(limit):
            await gather(*(achat(Client(model), f"{i}") for i in range(12)))
        return peak

    assert asyncio.run(main(3)) == 3
    assert asyncio.run(main(64)) == 12


def test_a_pass_on_a_loop_waits_for_forward_without_holding_it_up() -> None:
    async def main():
        with concurrency(2):
            x = leaf("a")
            y = chat(lambda messages: time.sleep(0.1) or "b", x)
            beat = asyncio.create_task(asyncio.sleep(0.01, "beat"))
            await y.backward_async(Variable("g"))
            return beat.done(), x.grad.data

    assert asyncio.run(main()) == (True, "b")
