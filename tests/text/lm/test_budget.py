"""A limit that no concurrency exceeds: what a call may cost is reserved before it is made."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gradspec.text.lm import (
    Budget,
    BudgetError,
    Cache,
    Client,
    Completion,
    Message,
    ModelError,
    OpenAIModel,
    Retry,
    RuleModel,
    StatusError,
    Usage,
)
from gradspec.text.lm._budget import LIMITS, most_tokens
from gradspec.text.lm._request import Request
from text.lm.server import Server

NOW = Retry(attempts=3, first_delay=0.0, max_delay=0.0)


def of_cost(tokens, delay=0.0):
    """Return a model whose every call costs so many tokens, and the list of its calls."""
    calls = []

    def model(messages, **options):
        calls.append(messages)
        time.sleep(delay)
        return Completion(text="ok", usage=Usage(prompt_tokens=tokens - 1, completion_tokens=1))

    return model, calls


def test_a_limit_on_calls_is_exact_under_threads():
    model, calls = of_cost(1, delay=0.01)
    client = Client(model, budget=(budget := Budget(calls=25)))
    refused = []

    def ask(i):
        try:
            client(f"{i}")
        except BudgetError:
            refused.append(i)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(ask, range(100)))
    assert (len(calls), len(refused), budget.calls) == (25, 75, 25)


def test_a_limit_on_calls_is_exact_under_tasks():
    calls = []

    async def model(messages):
        calls.append(messages)
        await asyncio.sleep(0.01)
        return "ok"

    client = Client(model, budget=Budget(calls=25))

    async def all_at_once():
        return await asyncio.gather(*(client.acall(f"{i}") for i in range(100)), return_exceptions=True)

    found = asyncio.run(all_at_once())
    assert len(calls) == 25
    assert sum(isinstance(f, BudgetError) for f in found) == 75


def test_a_limit_on_tokens_is_exact_under_threads():
    model, calls = of_cost(40, delay=0.01)
    budget = Budget(tokens=1000)
    client = Client(model, budget=budget, options={"max_tokens": 20})
    most = most_tokens(Request(identity={}, messages=(Message(role="user", content="00"),), options={"max_tokens": 20}))
    together = []

    def ask(i):
        try:
            client(f"{i:02}")
        except BudgetError:
            together.append(budget.tokens)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(ask, range(60)))
    assert budget.tokens == 40 * len(calls) <= 1000
    assert max(together) <= 1000
    assert together, "the limit was reached"
    assert most > 40  # so a call was refused while what it may cost was not left, though what it does cost was
    assert 1000 - most < budget.tokens or len(calls) < 60


def test_the_true_usage_takes_the_place_of_the_reservation():
    model, _ = of_cost(7)
    budget = Budget(tokens=10_000)
    Client(model, budget=budget)("hi", max_tokens=100)
    assert (budget.calls, budget.tokens) == (1, 7)
    assert repr(budget) == "Budget(calls=1 of None, tokens=7 of 10000)"


def test_a_model_that_counts_no_tokens_is_charged_the_most():
    budget = Budget(tokens=10_000)
    Client(lambda messages, **_: "ok", budget=budget)("hi", max_tokens=100)
    assert 100 < budget.tokens < 300


@pytest.mark.parametrize("options", [{}, {"max_tokens": None}, {"max_tokens": "9"}, {"max_tokens": True}])
def test_a_limit_on_tokens_needs_a_bound_of_the_reply(options):
    model, calls = of_cost(1)
    with pytest.raises(ValueError, match="needs the option max_tokens or max_completion_tokens"):
        Client(model, budget=Budget(tokens=10))("hi", **options)
    assert calls == []


def test_what_does_not_fit_is_not_called_and_says_so():
    model, calls = of_cost(1)
    with pytest.raises(BudgetError, match=r"may cost \d+ tokens, and 10 of 10 are left; lower max_tokens"):
        Client(model, budget=Budget(tokens=10))("hi", max_tokens=5)
    assert calls == []


def test_the_bound_counts_bytes_of_everything_that_is_sent():
    def most(content, **request):
        messages = (Message(role="user", content=content),)
        return most_tokens(Request(identity={}, messages=messages, **{"options": {"max_tokens": 5}, **request}))

    base = most("")
    assert most("日本") == base + 6
    assert most("", options={"max_tokens": 6}) == base + 1
    assert most("", schema={"type": "object"}) > base
    assert most("", options={"max_tokens": 5, "tools": ["x" * 100]}) > base + 100


@pytest.mark.parametrize(
    "alias",
    [
        *({name: 1000} for name in LIMITS[1:]),
        {"options": {"num_predict": 1000}},
        {"max_tokens": 100, "n_cmpl": 10},
    ],
    ids=str,
)
def test_a_limit_that_servers_obey_in_place_of_max_tokens_counts(alias):
    model, calls = of_cost(1)
    with pytest.raises(BudgetError, match="may cost"):
        Client(model, budget=Budget(tokens=1000))("hi", **{"max_completion_tokens": 5, "max_tokens": 5, **alias})
    assert calls == []


@pytest.mark.parametrize("alias", [{"n_predict": -1}, {"options": {"num_predict": -2}}, {"n_predict": "9"}], ids=str)
def test_a_limit_that_bounds_nothing_is_refused(alias):
    model, calls = of_cost(1)
    with pytest.raises(ValueError, match="such as n_predict, is a whole number"):
        Client(model, budget=Budget(tokens=1000))("hi", max_tokens=5, **alias)
    assert calls == []


def test_each_attempt_is_a_call_and_a_refused_one_costs_no_tokens():
    with Server(faults=[500, 429]) as server:
        budget = Budget(calls=9, tokens=10_000)
        found = Client(OpenAIModel("m", base_url=server.url), budget=budget, retry=NOW)("hi", max_tokens=9)
        assert (budget.calls, budget.tokens) == (3, found.usage.total)


def test_a_call_whose_end_is_unknown_keeps_its_reservation():
    with Server(faults=["reset"]) as server:
        budget = Budget(tokens=10_000)
        found = Client(OpenAIModel("m", base_url=server.url), budget=budget, retry=NOW)("hi", max_tokens=9)
        assert budget.tokens > found.usage.total + 9


def test_retries_stop_at_the_limit():
    with Server(faults=[500] * 9) as server:
        client = Client(
            OpenAIModel("m", base_url=server.url), budget=Budget(calls=2), retry=Retry(attempts=9, first_delay=0)
        )
        with pytest.raises(BudgetError, match=r"2 of 2 calls are made.*; the call before failed: .*500") as caught:
            client("hi")
        assert isinstance(caught.value.__cause__, StatusError)
        assert len(server.requests) == 2


def test_what_the_cache_answers_costs_nothing(tmp_path):
    budget = Budget(calls=1)
    model = RuleModel({"a": "b"})
    client = Client(model, cache=Cache(tmp_path / "replies.sqlite3"), budget=budget)
    assert [client("a").cached for _ in range(5)] == [False] + [True] * 4
    assert budget.calls == 1


def test_several_clients_share_one_budget():
    budget = Budget(calls=2)
    clients = [Client(of_cost(1)[0], budget=budget) for _ in range(3)]
    clients[0]("a"), clients[1]("a")
    with pytest.raises(BudgetError):
        clients[2]("a")


def test_a_cancelled_call_counts():
    async def slow(messages, **_):
        await asyncio.sleep(10)

    budget = Budget(calls=5, tokens=1000)

    async def cancel():
        task = asyncio.ensure_future(Client(slow, budget=budget).acall("hi", max_tokens=5))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancel())
    assert budget.calls == 1
    assert budget.tokens > 5


@pytest.mark.parametrize("error", [ValueError("mine"), StatusError("no", status=400), KeyboardInterrupt()])
def test_what_is_no_passing_fault_is_called_once(error):
    calls = []

    def model(messages):
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        Client(model, retry=NOW)("hi")
    assert len(calls) == 1


@pytest.mark.parametrize("error", [ConnectionRefusedError(), TimeoutError(), StatusError("busy", status=503)])
def test_a_plain_models_passing_faults_are_retried_too(error):
    left = [error, error]

    def model(messages):
        if left:
            raise left.pop()
        return "ok"

    assert Client(model, retry=NOW)("hi").text == "ok"
    left += [error] * 3
    with pytest.raises(type(error)):
        Client(model, retry=NOW)("hi")


def test_waits_grow_to_a_bound_and_are_random_below_it():
    policy = Retry(attempts=99, first_delay=1.0, max_delay=8.0, jitter=0.5)
    waits = {n: [policy.wait(n, TimeoutError()) for _ in range(200)] for n in (1, 2, 3, 4, 50)}
    for n, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (50, 8.0)):
        assert longest / 2 <= min(waits[n]) < max(waits[n]) <= longest
        assert len(set(waits[n])) > 100


def test_a_wait_is_never_shorter_than_what_the_server_asks():
    policy = Retry(first_delay=0.1, max_delay=8.0)
    assert policy.wait(1, StatusError("", status=429, retry_after=5.0)) == 5.0
    assert policy.wait(1, StatusError("", status=429, retry_after=9.0)) is None


def test_no_wait_goes_beyond_the_deadline():
    calls = []

    def model(messages):
        calls.append(time.monotonic())
        raise StatusError("busy", status=503)

    start = time.monotonic()
    with pytest.raises(StatusError) as caught:
        Client(model, retry=Retry(attempts=99, first_delay=30.0, deadline=20.0, max_delay=30.0, jitter=0))("hi")
    assert len(calls) == 1
    assert time.monotonic() - start < 20.0
    assert "given up after 1 calls" in caught.value.__notes__[0]


def test_the_users_random_numbers_are_left_alone():
    import random

    state = random.getstate()
    Retry().wait(1, TimeoutError())
    assert random.getstate() == state


@pytest.mark.parametrize(
    "settings",
    [{"attempts": 0}, {"jitter": 1.5}, {"first_delay": 2, "max_delay": 1}, {"first_delay": -1}, {"deadline": 0}],
)
def test_wrong_policies_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Retry(**settings)


def test_wrong_limits_are_refused():
    with pytest.raises(ValueError, match="a limit on tokens is at least 0, not -1"):
        Budget(tokens=-1)
    with pytest.raises(ValueError, match="schema_attempts"):
        Client(lambda messages: "", schema_attempts=0)


def test_an_async_model_that_hangs_is_stopped_at_the_deadline():
    stopped = threading.Event()

    async def hang(messages):
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    client = Client(hang, retry=Retry(deadline=0.1))
    for call in (client, lambda text: asyncio.run(client.acall(text))):
        stopped.clear()
        with pytest.raises(ModelError, match="did not answer before the deadline"):
            call("hi")
        assert stopped.wait(5)


def used(usage, **options):
    """Return the budget after one call of which the server says such a usage."""
    budget = Budget(tokens=10_000)
    Client(lambda messages, **_: Completion(text="ok", usage=usage), budget=budget)(
        "hi", **{"max_tokens": 10, **options}
    )
    return budget


LIES = [
    (-5, 1),
    (5, -1),
    (-(10**9), 10**9),
    (float("inf"), 1),
    (1, float("nan")),
    (1.5, 1),
    (True, 1),
    ("3", 1),
    (None, 1),
]


@pytest.mark.parametrize(("prompt", "completion"), LIES)
def test_a_usage_that_cannot_be_counts_as_the_most_that_the_call_could_cost(prompt, completion):
    assert used(Usage(prompt_tokens=prompt, completion_tokens=completion)).tokens == used(None).tokens > 0


@pytest.mark.parametrize("said", ["-5", "Infinity", "NaN", "1e999", '"5"', "true", "1.5", "null", "[]"])
def test_a_server_that_lies_about_its_usage(said, monkeypatch):
    import json

    made = {"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": "LIE", "completion_tokens": 1}}
    text = json.dumps(made).replace('"LIE"', said)
    monkeypatch.setattr("json.dumps", lambda *a, _dumps=json.dumps, **k: text if a[0] is made else _dumps(*a, **k))
    monkeypatch.setattr("text.lm.server.completion", lambda *_: made)
    with Server() as server:
        found = OpenAIModel("echo", base_url=server.url)("hi")
    assert (found.text, found.usage) == ("ok", None)


def test_a_usage_above_the_reservation_is_counted_and_ends_the_budget():
    budget = Budget(tokens=1000)
    model, calls = of_cost(5000)
    client = Client(model, budget=budget, options={"max_tokens": 10})
    client("hi")
    assert budget.tokens == 5000
    with pytest.raises(BudgetError, match="none of 1000 are left"):
        client("ho")
    assert len(calls) == 1


MOST = {"max_tokens": 100}


@pytest.mark.parametrize(
    ("options", "replies"),
    [
        (MOST, 100),
        ({"max_completion_tokens": 100}, 100),
        ({"max_tokens": 10, "max_completion_tokens": 100}, 100),  # a server may read either
        ({"max_tokens": 100, "max_completion_tokens": 10}, 100),
        (MOST | {"n": 3}, 300),
        (MOST | {"best_of": 4}, 400),
        (MOST | {"n": 3, "best_of": 4}, 400),
        (MOST | {"n": None}, 100),
    ],
)
def test_what_a_reply_may_cost(options, replies):
    from gradspec.text.lm._request import canonical

    request = Request(identity={}, messages=(Message(role="user", content="hi"),), options=options)
    assert most_tokens(request) == 64 + 2 + 16 + len(canonical([options, None])) + replies


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 10, "max_completion_tokens": "many"},
        {"max_tokens": -1},
        {"max_tokens": True},
        MOST | {"n": 0},
        MOST | {"best_of": 1.5},
        MOST | {"n": "2"},
        MOST | {"extra_body": {"max_tokens": 10**6}},
    ],
)
def test_an_option_that_leaves_the_cost_open_is_refused_before_the_call(options):
    model, calls = of_cost(1)
    with pytest.raises(ValueError, match="limit on tokens"):
        Client(model, budget=Budget(tokens=10**6))("hi", **options)
    assert calls == []


@pytest.mark.parametrize("limit", [float("nan"), 1.5, "9", True])
def test_a_limit_that_is_no_number_is_refused(limit):
    with pytest.raises(ValueError, match="a limit on tokens is a whole number"):
        Budget(tokens=limit)


def test_what_was_spent_survives_a_restart_with_the_cache(tmp_path):
    path = tmp_path / "replies.sqlite3"
    model, calls = of_cost(40)

    def client_of_a_new_process():
        cache = Cache(path)
        return Client(model, name="m", cache=cache, budget=Budget(calls=3, kept=cache), options={"max_tokens": 20})

    first = client_of_a_new_process()
    first("a")
    first("b")
    second = client_of_a_new_process()
    assert (second.budget.calls, second.budget.tokens) == (2, 80)
    second("a")  # kept, and costs nothing
    second("c")
    with pytest.raises(BudgetError, match="3 of 3 calls are made"):
        client_of_a_new_process()("d")
    assert len(calls) == 3


def test_a_process_that_is_killed_in_a_call_has_spent_it(tmp_path):
    import subprocess
    import sys

    path = tmp_path / "replies.sqlite3"
    program = f"""
import os, signal
from gradspec.text.lm import Budget, Cache, Client
cache = Cache({str(path)!r})
def model(messages, **options):
    os.kill(os.getpid(), signal.SIGKILL)
Client(model, name="m", cache=cache, budget=Budget(tokens=999, kept=cache))("hi", max_tokens=100)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == -9
    budget = Budget(tokens=999, kept=Cache(path))
    assert budget.calls == 1
    assert 100 < budget.tokens < 250


def test_processes_and_threads_share_what_is_kept(tmp_path):
    cache = Cache(tmp_path / "replies.sqlite3")
    model, calls = of_cost(1, delay=0.001)
    clients = [Client(model, name="m", budget=Budget(calls=25, kept=Cache(cache.path))) for _ in range(4)]
    refused = []

    def ask(i):
        try:
            clients[i % 4](f"{i}")
        except BudgetError:
            refused.append(i)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(60)))
    assert (len(calls), len(refused), Budget(kept=cache).calls) == (25, 35, 25)


def test_budgets_of_other_names_are_apart(tmp_path):
    cache = Cache(tmp_path / "replies.sqlite3")
    model, _ = of_cost(7)
    Client(model, budget=Budget(kept=cache, name="january"))("hi")
    assert (Budget(kept=cache, name="january").tokens, Budget(kept=cache).tokens) == (7, 0)
