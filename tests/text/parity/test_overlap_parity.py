"""Random programs of texts, one call after the other, with answers on their way, and as coroutines: the same bytes.

GRADSPEC_PARITY_PROGRAMS says how many, as for the programs of numbers; `nox -s lab -- parity` runs 10,000.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from typing import Any

import pytest

from gradspec.text import Variable, concurrency, gather, ops
from gradspec.text._graph import _deferred
from gradspec.text._graph import _gather as gathering
from gradspec.text.ops import achat, chat

PROGRAMS = int(os.environ.get("GRADSPEC_PARITY_PROGRAMS", "500"))
CHUNK = 50


class Model:
    """A model that answers by what it is asked, and in its own time."""

    def __init__(self, seed: int, longest: float) -> None:
        self.draw, self.longest, self.lock = random.Random(seed), longest, threading.Lock()
        self.calls: list[str] = []

    def answer(self, messages: Any) -> str:
        said = "|".join(f"{message.role}:{message.content}" for message in messages)
        with self.lock:
            self.calls.append(said)
        return f"{len(said)}.{sum(map(ord, said)) % 997} <score>0.{len(said) % 10}</score>"

    def pause(self) -> float:
        with self.lock:
            return self.draw.choice((0.0, self.draw.uniform(0, self.longest)))

    def __call__(self, messages: Any, **options: Any) -> str:
        if self.longest:
            time.sleep(self.pause())
        return self.answer(messages)

    async def acall(self, messages: Any, **options: Any) -> str:
        await asyncio.sleep(self.pause())
        return self.answer(messages)


def plan(seed: int) -> list[tuple[Any, ...]]:
    """Draw a program: threads of steps, each with an operation and the places of what it takes."""
    draw = random.Random(seed)
    steps: list[tuple[Any, ...]] = []
    for at in range(3, 3 + draw.randint(3, 10)):
        kind = draw.choice(["chat", "chat", "chat", "join", "fill", "add", "sum", "judge", "batch"])
        steps.append((kind, draw.randrange(at), draw.randrange(at), draw.randrange(at)))
    return steps


def step(values: list[Variable], made: tuple[Any, ...], ask: Any, model: Model) -> Any:
    """Return what one step makes of the values before it."""
    kind, *places = made
    x, y, z = (values[place] for place in places)
    match kind:
        case "chat":
            return ask(model, [{"role": "system", "content": x}, {"role": "user", "content": ["a ", y, " b"]}])
        case "batch":
            return ask(model, [{"role": "user", "content": [x, Variable(["1", "2"])]}])
        case "join":
            return ops.join([x, y, z], "; ")
        case "fill":
            return ops.fill("{x} and {y}", x=x, y=y)
        case "add":
            return x + " " + y
        case "sum":
            return ops.sum([x, y])
        case _:
            return ops.judge(model, "task", x, z)[1]


def leaves() -> list[Variable]:
    return [Variable(f"leaf {i}", role=f"leaf {i}", requires_grad=True) for i in range(3)]


def single(value: Variable) -> Variable:
    """Return a batch of answers as one text."""
    return ops.fill("{both}", both=value)


def told(values: list[Variable], loss: Variable) -> tuple[Any, ...]:
    return loss.data, [(value.data, value.role) for value in values], [grad_of(value) for value in values[:3]]


def grad_of(value: Variable) -> Any:
    return value.grad and [value.grad.data, [str(part) for part in value.grad.parts]]


def ended(values: list[Variable], k: int) -> tuple[Any, ...]:
    loss = ops.join(values[3:], "\n")
    loss.backward(Variable("shorter"), max_concurrency=k)
    return told(values, loss)


def plain(seed: int, model: Model, k: int) -> tuple[Any, ...]:
    """Run a program, inside `concurrency(k)` if k is more than 1."""
    with concurrency(k):
        values = leaves()
        for made in plan(seed):
            value = step(values, made, chat, model)
            values.append(single(value) if made[0] == "batch" else value)
        return ended(values, k)


def woven(seed: int, model: Model) -> tuple[Any, ...]:
    """Run three programs at once, each with leaves of its own, and join what they end with."""

    async def one(values: list[Variable], seed: int) -> list[Variable]:
        for made in plan(seed):
            value = step(values, made, achat, model)
            value = await value if asyncio.iscoroutine(value) else value
            values.append(single(value) if made[0] == "batch" else value)
        return values

    async def main() -> tuple[Any, ...]:
        first = leaves()
        found = await gather(*(one([*first], seed + i) for i in range(3)))
        values = [*first, *(value for values in found for value in values[3:])]
        loss = ops.join(values[3:], "\n")
        await loss.backward_async(Variable("shorter"), max_concurrency=8)
        return told(values, loss)

    return asyncio.run(main())


def in_turn(seed: int, model: Model) -> tuple[Any, ...]:
    """Run the same three programs one after the other."""
    first = leaves()
    values = [*first]
    for i in range(3):
        own = [*first]
        for made in plan(seed + i):
            value = step(own, made, chat, model)
            own.append(single(value) if made[0] == "batch" else value)
        values += own[3:]
    return ended(values, 1)


def differing(seed: int) -> list[str]:
    """Return in which ways a program differs from itself, run one call after the other."""
    model = Model(seed, 0.0)
    wanted = plain(seed, model, 1)
    found = []
    for k in (2, 16):
        other = Model(seed + k, 0.001)
        if plain(seed, other, k) != wanted or sorted(other.calls) != sorted(model.calls):
            found.append(f"program {seed} with {k} calls at once")
    return found


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in range(CHUNK, PROGRAMS, CHUNK))]
)
def test_answers_on_their_way_change_nothing(first: int) -> None:
    assert [line for seed in range(first, min(first + CHUNK, PROGRAMS)) for line in differing(seed)] == []


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in range(CHUNK, PROGRAMS // 5, CHUNK))]
)
def test_nor_do_coroutines(first: int) -> None:
    seeds = range(first, min(first + CHUNK, PROGRAMS))
    assert [seed for seed in seeds if woven(seed, Model(seed, 0.001)) != in_turn(seed, Model(seed, 0.0))] == []


def test_a_gather_that_leaves_the_order_to_the_calls_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_in_order", lambda made: None)
    assert any(woven(seed, Model(seed, 0.003)) != in_turn(seed, Model(seed, 0.0)) for seed in range(60))


def test_a_call_that_looks_late_at_its_inputs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    late = threading.Event()

    def model(messages: Any) -> str:
        late.wait(20)
        return str(messages[-1].content)

    monkeypatch.setattr("gradspec.text.ops._chat.given", lambda value: value)
    monkeypatch.setattr("gradspec.text.ops._conversation.now", _deferred.given)
    with concurrency(2):
        x = Variable("old", requires_grad=True)
        y = chat(model, chat(model, x))
        z = chat(model, [{"role": "user", "content": [y, x]}])
        x.data = "new"
        late.set()
    assert z.data != "oldold"
