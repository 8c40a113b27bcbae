"""A reply is kept under its whole request, paid for once, and found again by another process."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gradspec.text.lm import (
    Budget,
    Cache,
    CacheMissError,
    Client,
    Completion,
    ModelTimeoutError,
    OpenAIModel,
    ReplyError,
    Retry,
    Usage,
)
from text.lm.server import Server


class Counted:
    """A plain model that counts its calls and can be slow or fail."""

    def __init__(self, delay=0.0, error=None):
        self.calls = 0
        self.delay = delay
        self.error = error
        self.lock = threading.Lock()

    def __call__(self, messages, **options):
        with self.lock:
            self.calls += 1
        time.sleep(self.delay)
        if self.error:
            raise self.error
        return Completion(
            text=f"{self.calls}: {messages[-1].content}\ud800",
            usage=Usage(prompt_tokens=1, completion_tokens=2),
            finish_reason="stop",
        )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replies.sqlite3"


def client_of(model, cache, **settings):
    return Client(model, name="counted", cache=cache, **settings)


def test_a_request_is_paid_once_and_comes_back_whole(path):
    model = Counted()
    client = client_of(model, Cache(path))
    first, second = client("hi"), client("hi")
    assert (first.cached, second.cached, model.calls) == (False, True, 1)
    assert (second.text, second.usage, second.finish_reason) == (first.text, first.usage, first.finish_reason)
    assert client_of(model, Cache(path))("hi").cached
    assert asyncio.run(client.acall("hi")).cached


def test_without_a_cache_every_call_is_made():
    model = Counted()
    client = Client(model)
    client("hi"), client("hi")
    assert model.calls == 2


REQUESTS = [
    {"messages": "a"},
    {"messages": "a "},
    {"messages": [{"role": "system", "content": "a"}]},
    {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "bc"}]},
    {"messages": [{"role": "user", "content": "ab"}, {"role": "user", "content": "c"}]},
    {"messages": "a", "temperature": 0},
    {"messages": "a", "temperature": 1},
    {"messages": "a", "temperature": True},
    {"messages": "a", "stop": "temperature"},
    {"messages": "a", "top_p": 0},
    {"messages": "a", "stop": ["x", "y"]},
    {"messages": "a", "stop": ["xy"]},
    {"messages": "a", "schema": {}},
    {"messages": "a", "schema": {"minLength": 0}},
    {"messages": "a", "sample": 1},
]


def test_the_order_in_which_options_are_written_is_no_difference(path):
    model = Counted()
    client = client_of(model, Cache(path))
    client("hi", a={"x": 1, "y": (1, 2)}, b=2)
    assert client("hi", b=2, a={"y": [1, 2], "x": 1}).cached


@pytest.mark.parametrize("server", ["counted", "other"])
def test_requests_that_differ_anywhere_share_nothing(path, server):
    client = Client(lambda messages, **_: json.dumps(messages[-1].content), name="counted", cache=Cache(path))
    other = Client(lambda messages, **_: "0", name=server, cache=Cache(path))
    for request in REQUESTS:
        assert not client(**request).cached, request
    assert len(Cache(path)) == len(REQUESTS)
    assert [other(**r).cached for r in REQUESTS] == [server == "counted"] * len(REQUESTS)


def test_the_address_and_model_of_a_server_are_part_of_the_request(path):
    with Server() as one, Server() as two:
        cache = Cache(path)
        for model in (
            OpenAIModel("a", base_url=one.url),
            OpenAIModel("b", base_url=one.url),
            OpenAIModel("a", base_url=two.url),
        ):
            assert [Client(model, cache=cache)("hi").cached for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stop": {1: "a"}}, "'stop' has the key 1; a key is a string"),
        ({"temperature": float("nan")}, "'temperature' is nan, which JSON cannot say"),
        ({"tools": [{"f": {1, 2}}]}, "'tools', element 0, 'f' is a set"),
    ],
)
def test_what_has_no_canonical_form_is_refused(path, options, says):
    model = Counted()
    with pytest.raises((TypeError, ValueError), match=says):
        client_of(model, Cache(path))("hi", **options)
    assert model.calls == 0


def test_a_cache_must_know_who_answered(path):
    with pytest.raises(ValueError, match="a cache must know who answered"):
        Client(Counted(), cache=Cache(path))


def test_an_unknown_mode_is_refused(path):
    with pytest.raises(ValueError, match="mode is read_write, replay or refresh, not 'record'"):
        Cache(path, mode="record")


def test_replay_calls_nothing_and_a_miss_is_an_error(path):
    model = Counted()
    client_of(model, Cache(path))("hi")
    replay = client_of(model, Cache(path, mode="replay"))
    assert replay("hi").cached
    with pytest.raises(CacheMissError, match=r"has no reply to this request.*ends with 'ho'") as caught:
        replay("ho")
    assert isinstance(caught.value, LookupError)
    with pytest.raises(CacheMissError):
        asyncio.run(replay.acall("hi", temperature=1))
    assert (model.calls, len(Cache(path))) == (1, 1)


def test_replay_works_where_nothing_can_be_written(path):
    model = Counted()
    recorded = Cache(path)
    client_of(model, recorded)("hi")
    recorded.close()
    path.with_name(f"{path.name}.lock").unlink()  # a checkout has none
    before = {p.name: p.read_bytes() for p in path.parent.iterdir()}
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        assert client_of(model, Cache(path, mode="replay"))("hi").cached
    finally:
        path.parent.chmod(0o755)
    assert before[path.name] == path.read_bytes()
    assert not path.with_name(f"{path.name}.lock").exists()  # whoever may write everywhere makes none either


def test_replay_needs_a_record(path):
    with pytest.raises(FileNotFoundError, match=r"no cache at .* to replay; record one"):
        Cache(path, mode="replay")
    assert not path.exists()


def test_refresh_makes_every_call_and_replaces_the_reply(path):
    model = Counted()
    client_of(model, Cache(path))("hi")
    assert client_of(model, Cache(path, mode="refresh"))("hi").text.startswith("2")
    assert client_of(model, Cache(path))("hi").text.startswith("2")


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to look like one" * 40])
def test_a_file_that_is_no_cache_is_not_replayed(path, content):
    path.write_bytes(content)
    with pytest.raises((ValueError, sqlite3.DatabaseError)):
        Cache(path, mode="replay")
    assert path.read_bytes() == content


def test_a_cache_of_another_format_is_refused(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(ValueError, match="is a cache of format 9; this version reads format 1"):
        Cache(path)


def test_an_error_is_not_kept(path):
    model = Counted(error=ReplyError("no"))
    client = client_of(model, Cache(path))
    with pytest.raises(ReplyError):
        client("hi")
    model.error = None
    assert not client("hi").cached


def test_equal_requests_of_many_threads_pay_once(path):
    model = Counted(delay=0.1)
    clients = [client_of(model, Cache(path)) for _ in range(4)]  # several caches of one file
    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(lambda i: clients[i % 4]("hi"), range(32)))
    assert model.calls == 1
    assert len({f.text for f in found}) == 1
    assert sorted(f.cached for f in found) == [False] + [True] * 31


def test_equal_requests_of_many_tasks_pay_once(path):
    model = Counted(delay=0.1)
    client = client_of(model, Cache(path))

    async def all_at_once():
        return await asyncio.gather(*(client.acall("hi") for _ in range(32)))

    assert len({f.text for f in asyncio.run(all_at_once())}) == 1
    assert model.calls == 1


def test_those_who_wait_get_the_error_too(path):
    model = Counted(delay=0.2, error=ReplyError("no"))
    client = client_of(model, Cache(path))
    started = threading.Barrier(8)

    def ask(_):
        started.wait()
        with pytest.raises(ReplyError, match="no"):
            client("hi")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert model.calls == 1


def test_when_the_one_that_pays_is_cancelled_another_pays(path):
    calls = []

    async def slow(messages, **_):
        calls.append(1)
        await asyncio.sleep(0.2)
        return "done"

    client = Client(slow, name="slow", cache=Cache(path))

    async def race():
        first = asyncio.ensure_future(client.acall("hi"))
        await asyncio.sleep(0.05)
        others = [asyncio.ensure_future(client.acall("hi")) for _ in range(3)]
        await asyncio.sleep(0.05)
        first.cancel()
        return await asyncio.gather(first, *others, return_exceptions=True)

    first, *others = asyncio.run(race())
    assert isinstance(first, asyncio.CancelledError)
    assert [o.text for o in others] == ["done"] * 3
    assert len(calls) == 2


def test_one_that_stops_waiting_does_not_stop_the_one_that_pays(path):
    async def slow(messages, **_):
        await asyncio.sleep(0.2)
        return "done"

    client = Client(slow, name="slow", cache=Cache(path))

    async def race():
        first = asyncio.ensure_future(client.acall("hi"))
        await asyncio.sleep(0.05)
        other = asyncio.ensure_future(client.acall("hi"))
        await asyncio.sleep(0.05)
        other.cancel()
        return await first

    assert asyncio.run(race()).text == "done"


def test_the_deadline_holds_for_those_who_wait_too(path):
    model = Counted(delay=1.0)
    cache = Cache(path)
    payer = threading.Thread(target=client_of(model, cache), args=("hi",))
    payer.start()
    time.sleep(0.2)
    hurried = client_of(model, cache, retry=Retry(deadline=0.1))
    with pytest.raises(TimeoutError):
        hurried("hi")
    with pytest.raises(TimeoutError):
        asyncio.run(hurried.acall("hi"))
    payer.join()
    assert hurried("hi").cached


HERE = Path(__file__).parents[2]
ASK = """
import sys, time
from gradspec.text.lm import Cache, Client, OpenAIModel
url, path, mode, *questions = sys.argv[1:]
options = {"b": 1, "a": {"d": 1, "c": 2}}
client = Client(OpenAIModel("echo", base_url=url), cache=Cache(path, mode=mode), options=options)
print("ready", flush=True)
sys.stdin.readline()
for question in questions:
    print(client(question, schema=None, **{"z": 1, "y": 2}).text, flush=True)
"""


def ask(url, path, *questions, mode="read_write", **env):
    return subprocess.Popen(
        [sys.executable, "-c", ASK, url, str(path), mode, *questions],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )


@pytest.mark.slow
def test_equal_requests_of_several_processes_pay_once(path):
    with Server(delay=0.3) as server:
        children = [ask(server.url, path, "a", "b", "c") for _ in range(3)]
        for child in children:
            assert child.stdout.readline() == "ready\n"
        outputs = [child.communicate("\n", timeout=60)[0] for child in start_together(children)]
        assert len(set(outputs)) == 1
        assert [len(server.requests), len(server.paid), len(outputs[0].split())] == [3, 3, 3]


def start_together(children):
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    return children


def test_another_process_replays_without_a_call_for_any_hash_seed(path):
    with Server() as server:
        first = ask(server.url, path, "a", "b", PYTHONHASHSEED="0").communicate("\n", timeout=60)[0]
        url = server.url
    for seed in ("1", "2", "3"):  # the server is gone: a call would be refused
        again = ask(url, path, "a", "b", mode="replay", PYTHONHASHSEED=seed).communicate("\n", timeout=60)[0]
        assert again == first
    assert len(server.requests) == 2


@pytest.mark.slow
def test_a_killed_process_has_kept_what_it_paid_for_and_holds_nobody_up(path):
    questions = [f"question {i}" for i in range(6)]
    with Server(delay=0.2) as server:
        child = ask(server.url, path, *questions)
        child.stdout.readline()
        child.stdin.write("\n")
        child.stdin.flush()
        for _ in range(3):
            child.stdout.readline()
        time.sleep(0.1)  # into the fourth call
        child.kill()
        child.communicate(timeout=60)
        kept = len(Cache(path))
        assert kept >= 3
        output, _ = ask(server.url, path, *questions).communicate("\n", timeout=60)
        assert len(output.split()) == 7
        asked = [r["messages"][0]["content"] for r in server.requests]
        again = {q for q in asked if asked.count(q) > 1}
        assert len(again) <= 1  # the call that was cut off
        assert not again & set(questions[:kept])
        assert set(asked) == set(questions)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork with threads: that is what is tried
def test_a_fork_uses_the_cache_on_its_own(path):
    model = Counted(delay=1.0)
    client = client_of(model, Cache(path), retry=Retry(deadline=30.0))
    payer = threading.Thread(target=client, args=("under way",))
    payer.start()
    time.sleep(0.3)
    child = os.fork()
    if child == 0:  # its copy of the thread that pays will never answer; the parent's own does, through the file
        fine = False
        try:
            fine = client("under way").cached and not client("in the child").cached
        finally:
            os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    payer.join()
    assert client("in the child").cached
    assert model.calls == 1


def test_a_reply_that_was_paid_for_and_has_the_wrong_schema_is_kept_too(path):
    replies = iter(["one", "2"])
    calls = []

    def model(messages, schema):
        calls.append(1)
        return next(replies)

    for _ in range(2):
        client = Client(model, name="m", cache=Cache(path), budget=Budget(calls=2))
        assert client("hi", schema={"type": "integer"}).value == 2
    assert len(calls) == 2


def test_a_deadline_among_processes(path, monkeypatch):
    """Another process that has the lock and never answers is waited for until the deadline."""
    cache = Cache(path)
    monkeypatch.setattr("gradspec.text.lm._single_flight.Flights.lock", lambda self, key: False)
    with pytest.raises(ModelTimeoutError, match="another process"):
        client_of(Counted(), cache, retry=Retry(deadline=0.1))("hi")
