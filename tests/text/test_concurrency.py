"""Calls at the same time: the result is that of one after the other, and an error, a cancel or Ctrl-C undoes all."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from typing import Any

import pytest

from gradspec.text import Function, Variable, backward, backward_async, concurrency, defer, is_grad_enabled, ops
from gradspec.text._engine._concurrent import Calls
from gradspec.text._scheduling._overlap import overlap


class Meter:
    """Counts calls, and how many were in flight at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = self.now = self.peak = 0
        #: Until so many calls were in flight at once, none of them ends.
        self.awaited = 0

    def __enter__(self) -> None:
        with self.lock:
            self.calls += 1
            self.now += 1
            self.peak = max(self.peak, self.now)

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.now -= 1


METER = Meter()
DELAY = {"of": lambda: 0.0}
FAIL: set[str] = set()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    global METER
    METER = Meter()
    DELAY["of"] = lambda: 0.0
    FAIL.clear()


PATIENCE = 20.0


def leaf(role: str) -> Variable:
    return Variable(role, role=role, requires_grad=True)


def ask(role: str, text: str) -> Variable:
    with METER:
        end = time.monotonic() + PATIENCE
        while METER.peak < METER.awaited and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(DELAY["of"]())
        if role in FAIL:
            raise KeyError(role)
        return Variable(f"{role}<{text}>", role=f"to {role}")


async def ask_async(role: str, text: str) -> Variable:
    with METER:
        end = time.monotonic() + PATIENCE
        while METER.peak < METER.awaited and time.monotonic() < end:
            await asyncio.sleep(0.001)
        await asyncio.sleep(DELAY["of"]())
        if role in FAIL:
            raise KeyError(role)
        return Variable(f"{role}<{text}>", role=f"to {role}")


class Base(Function):
    io_bound = True

    @staticmethod
    def forward(ctx, *xs):
        ctx.save_for_backward(*xs)
        return Variable("|".join(str(x.data) for x in xs)[:20], role="out")


class Threaded(Base):
    @staticmethod
    def backward(ctx, g):
        assert not is_grad_enabled()
        return tuple(ask(x.role, g.data) for x in ctx.saved_variables)


class Several(Base):
    io_bound = False  # it waits for nothing itself: the calls it returns do

    @staticmethod
    def backward(ctx, g):
        return tuple(defer(ask, x.role, text=g.data) for x in ctx.saved_variables)


class SeveralAsync(Base):
    @staticmethod
    def backward(ctx, g):
        return tuple(defer(ask_async, x.role, g.data) for x in ctx.saved_variables)


class Async(Base):
    @staticmethod
    async def backward(ctx, g):
        return tuple([await ask_async(x.role, g.data) for x in ctx.saved_variables])


class InList(Function):
    @staticmethod
    def forward(ctx, xs):
        ctx.save_for_backward(*xs)
        return Variable("out")

    @staticmethod
    def backward(ctx, g):
        return [defer(ask, x.role, g.data) for x in ctx.saved_variables]


class InDict(Function):
    @staticmethod
    def forward(ctx, xs):
        ctx.keys = list(xs)
        ctx.save_for_backward(xs)
        return Variable("out")

    @staticmethod
    def backward(ctx, g):
        (xs,) = ctx.saved_variables
        return {key: defer(ask, x.role, g.data) for key, x in xs.items()}


KINDS = [Threaded, Several, SeveralAsync, Async]


def branches(kind: type[Function], n: int = 16) -> tuple[list[Variable], Variable]:
    """Return n leaves, each through a call of its own, and the sum of them."""
    leaves = [leaf(f"x{i}") for i in range(n)]
    total = kind.apply(leaves[0])
    for x in leaves[1:]:
        total = total + kind.apply(x)
    return leaves, total


@pytest.mark.parametrize("kind", KINDS)
def test_branches_overlap_up_to_the_limit(kind) -> None:
    leaves, total = branches(kind)
    total.backward(Variable("g"), retain_graph=True)
    assert (METER.calls, METER.peak) == (16, 1)
    METER.awaited = 4
    total.backward(Variable("g"), retain_graph=True, max_concurrency=4)
    assert (METER.calls, METER.peak) == (32, 4)
    METER.awaited = 16
    with concurrency(16):
        total.backward(Variable("g"))
    assert (METER.calls, METER.peak) == (48, 16)
    assert [x.grad.data for x in leaves] == ["\n".join([f"x{i}<g>"] * 3) for i in range(16)]


@pytest.mark.parametrize("kind", [Several, SeveralAsync, InList, InDict])
def test_the_calls_for_the_inputs_of_one_node_overlap(kind) -> None:
    METER.awaited = 8
    leaves = [leaf(f"x{i}") for i in range(8)]
    given = {InList: [leaves], InDict: [dict(enumerate(leaves))]}.get(kind, leaves)
    kind.apply(*given).backward(Variable("g"), max_concurrency=8)
    assert METER.peak == 8
    assert [x.grad.data for x in leaves] == [f"x{i}<g>" for i in range(8)]


@pytest.mark.parametrize("limit", [0, -1, 1.5, "4"])
def test_a_limit_is_a_positive_number(limit) -> None:
    with pytest.raises(ValueError, match="max_concurrency is a positive number of calls"):
        leaf("x").backward(Variable("g"), max_concurrency=limit)


def random_graph(seed: int) -> tuple[list[Variable], Variable]:
    rng = random.Random(seed)
    leaves = [leaf(f"x{i}") for i in range(4)]
    pool = list(leaves)
    for _ in range(30):
        kind = rng.choice(KINDS)
        pool.append(kind.apply(*rng.choices(pool[-12:], k=rng.randint(1, 3))))
    return leaves, Threaded.apply(*pool[-6:])


@pytest.mark.parametrize("seed", range(8))
def test_results_do_not_depend_on_the_limit_nor_on_who_finishes_first(seed) -> None:
    delays = random.Random(seed)
    results = []
    for limit in (1, 2, 64):
        DELAY["of"] = (lambda: 0.0) if limit == 1 else lambda: delays.random() * 0.003
        leaves, top = random_graph(seed)
        top.backward(Variable("g"), max_concurrency=limit)
        results.append([x.grad and (x.grad.data, x.grad.parts) for x in leaves])
    assert any(results[0])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_keeps_its_type_stops_what_has_not_started_and_undoes_all(kind) -> None:
    DELAY["of"] = lambda: 0.01
    FAIL.add("x7")
    leaves, total = branches(kind)
    with pytest.raises(KeyError, match="x7"):
        total.backward(Variable("g"), max_concurrency=2)
    assert METER.now == 0
    assert METER.calls < 16
    assert [x.grad for x in leaves] == [None] * 16
    FAIL.clear()
    total.backward(Variable("g"), max_concurrency=2)
    assert leaves[7].grad.data == "x7<g>"


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_task_undoes_all(kind) -> None:
    DELAY["of"] = lambda: 0.05
    leaves, total = branches(kind)

    async def main() -> None:
        task = asyncio.create_task(total.backward_async(Variable("g"), max_concurrency=4))
        while METER.calls < 4:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [x.grad for x in leaves] == [None] * 16
    assert METER.calls < 16
    total.backward(Variable("g"), max_concurrency=16)
    assert leaves[0].grad.data == "x0<g>"


@pytest.mark.parametrize("kind", KINDS)
def test_a_timeout_undoes_all(kind) -> None:
    DELAY["of"] = lambda: 0.2
    leaves, total = branches(kind)

    async def main() -> None:
        async with asyncio.timeout(0.05):
            await backward_async(total, Variable("g"), max_concurrency=4)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert [x.grad for x in leaves] == [None] * 16


@pytest.fixture
def interruptible():
    """Listen to Ctrl-C, which a shell has its background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("limit", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_undoes_all(kind, limit, interruptible) -> None:
    DELAY["of"] = lambda: 0.05
    leaves, total = branches(kind)

    def interrupt() -> None:
        while METER.calls < limit:
            time.sleep(0.001)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        total.backward(Variable("g"), max_concurrency=limit)
    thread.join()
    assert [x.grad for x in leaves] == [None] * 16
    DELAY["of"] = lambda: 0.0
    total.backward(Variable("g"), max_concurrency=limit)
    assert leaves[0].grad.data == "x0<g>"


def test_backward_works_where_an_event_loop_runs_already() -> None:
    leaves, total = branches(Async, 4)

    async def cell() -> None:
        total.backward(Variable("g"), max_concurrency=4)

    asyncio.run(cell())
    assert [x.grad.data for x in leaves] == [f"x{i}<g>" for i in range(4)]


def test_an_exception_where_an_event_loop_runs_already() -> None:
    FAIL.add("x1")
    leaves, total = branches(Async, 4)

    async def cell() -> None:
        total.backward(Variable("g"), max_concurrency=4)

    with pytest.raises(KeyError, match="x1"):
        asyncio.run(cell())
    assert [x.grad for x in leaves] == [None] * 4


def test_two_passes_over_one_graph_at_once_each_narrow_their_own_flags() -> None:
    flags = []
    gate = threading.Barrier(2)

    class Look(Base):
        @staticmethod
        def backward(ctx, g):
            gate.wait(timeout=10)
            flags.append(ctx.needs_input_grad)
            gate.wait(timeout=10)
            return tuple(g if needed else None for needed in ctx.needs_input_grad)

    x, y = leaf("x"), leaf("y")
    top = Look.apply(x, y)
    overlap([lambda v=v: backward(top, Variable("g"), retain_graph=True, inputs=v) for v in (x, y)], limit=2)
    assert sorted(flags) == [(False, True), (True, False)]
    assert (x.grad.data, y.grad.data) == ("g", "g")


class TwoSteps(Function):
    """A call whose feedback takes two steps: the second is known when the first is done."""

    @staticmethod
    def forward(ctx, x):
        return Variable(x.data)

    @staticmethod
    def backward(ctx, grad_out):
        return defer(lambda: defer(lambda: Variable(f"twice: {grad_out.data}")))


@pytest.mark.parametrize("limit", [1, 4])
def test_a_call_for_later_may_lead_to_another(limit) -> None:
    x = leaf("x")
    TwoSteps.apply(x).backward(Variable("g"), max_concurrency=limit)
    assert x.grad.data == "twice: g"


def test_overlap_keeps_the_order_and_raises_the_first_error() -> None:
    assert overlap([lambda i=i: (time.sleep(0.01 * (3 - i)), i)[1] for i in range(3)], limit=3) == [0, 1, 2]
    assert overlap([], limit=3) == []

    def fail() -> Any:
        raise KeyError("b")

    started = []
    with pytest.raises(KeyError, match="b"):
        overlap([fail, *[lambda i=i: (time.sleep(0.02), started.append(i)) for i in range(20)]], limit=2)
    assert len(started) < 20


def test_a_call_may_wait_for_calls_that_overlap() -> None:
    class Combine(Base):
        io_bound = False

        @staticmethod
        def backward(ctx, g):
            calls = [defer(ask, f"part {i}", g.data) for i in range(4)]
            return defer(lambda *said: Variable(" ".join(part.data for part in said)), *calls)

    x = leaf("x")
    y = Combine.apply(x)
    y.backward(Variable("g"), retain_graph=True)
    plain, x.grad = x.grad, None
    METER.peak, METER.awaited = 0, 4
    y.backward(Variable("g"), max_concurrency=4)
    assert x.grad.data == plain.data == "part 0<g> part 1<g> part 2<g> part 3<g>"


def test_a_node_with_one_call_costs_one_task(monkeypatch) -> None:
    started = []
    task = Calls._task
    monkeypatch.setattr(Calls, "_task", lambda calls, coroutine: started.append(1) or task(calls, coroutine))
    answers = [ops.chat(lambda messages: "ok", Variable(f"{i}", requires_grad=True)) for i in range(16)]
    ops.sum(answers).backward(Variable("g"), max_concurrency=16)
    assert len(started) == 16
