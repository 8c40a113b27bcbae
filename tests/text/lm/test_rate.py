"""So many requests and tokens in any minute, whoever asks."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from gradspec.text.lm import Client, ModelTimeoutError, RateLimit, Retry, _rate


class Clock:
    """A clock that the waits move, and nothing else."""

    def __init__(self):
        self.now, self.lock = 0.0, threading.Lock()

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        with self.lock:
            self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr("gradspec.text.lm._steps.time.sleep", found.sleep)
    return found


def model_at(clock, made):
    def model(messages, **options):
        made.append(clock())
        return "ok"

    return model


def test_no_minute_has_more_requests(clock):
    made = []
    client = Client(model_at(clock, made), rate=RateLimit(requests=10, clock=clock))
    for i in range(35):
        client(f"{i}")
    assert made == [0.0] * 10 + [60.0] * 10 + [120.0] * 10 + [180.0] * 5


def test_no_minute_has_more_tokens(clock):
    made = []
    client = Client(model_at(clock, made), rate=RateLimit(tokens=1000, clock=clock))
    for _ in range(5):
        client("x" * 400)
    assert made == [0.0, 0.0, 60.0, 60.0, 120.0]
    client("x" * 5000)  # above the limit by itself: an empty minute is all that it can have
    client("x")
    assert made[5:] == [180.0, 240.0]


def test_what_the_options_bound_counts_with_the_reply(clock):
    made = []
    client = Client(model_at(clock, made), rate=RateLimit(tokens=1000, clock=clock))
    for _ in range(2):
        client("hi", max_tokens=600)
    assert made == [0.0, 60.0]


def test_the_clients_and_threads_that_share_a_limit_share_it(monkeypatch):
    monkeypatch.setattr(_rate, "MINUTE", 0.2)
    import time

    made, rate = [], RateLimit(requests=4)
    clients = [Client(model_at(time.monotonic, made), rate=rate) for _ in range(3)]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda i: clients[i % 3](f"{i}"), range(12)))
    made.sort()
    assert all(later - first > 0.19 for first, later in zip(made, made[4:], strict=False))
    assert len(list(pairwise(made))) == 11


def test_tasks_share_it_too(monkeypatch):
    monkeypatch.setattr(_rate, "MINUTE", 0.2)
    import time

    made = []
    client = Client(model_at(time.monotonic, made), rate=RateLimit(requests=2))

    async def main():
        await asyncio.gather(*(client.acall(f"{i}") for i in range(4)))

    asyncio.run(main())
    made.sort()
    assert made[2] - made[0] > 0.19


def test_a_deadline_is_not_waited_past():
    client = Client(lambda m: "ok", rate=RateLimit(requests=1), retry=Retry(deadline=0.5))
    client("a")
    with pytest.raises(ModelTimeoutError, match=r"RateLimit\(requests=1, tokens=None\) has no place"):
        client("b")


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "9"])
def test_a_limit_that_is_no_count(limit):
    with pytest.raises(ValueError, match="a limit on requests a minute is a whole number"):
        RateLimit(requests=limit)
