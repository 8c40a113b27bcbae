"""A file that fails is one error of ours, and no reply that was paid is lost by it."""

import sqlite3
from contextlib import closing

import pytest

from gradspec.text.lm import Budget, Cache, CacheError, Client, Completion, ModelError, OpenAIModel, Usage, _replies
from text.lm.server import Server


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(_replies, "TIMEOUT", 0.05)
    return tmp_path / "replies.sqlite3"


def long_reply(messages, **options):
    return Completion(text="x" * 100_000, usage=Usage(prompt_tokens=1, completion_tokens=2))


def fill_the_disk(cache):
    connection = cache._here()[0]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")


def locked(path):
    """Return a foreign connection that holds the file."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return closing(other)


def test_a_full_disk_loses_no_paid_reply(path):
    cache = Cache(path)
    client = Client(long_reply, name="m", cache=cache)
    fill_the_disk(cache)
    with pytest.warns(UserWarning, match=r"was paid and is returned, and not kept; .* disk is full; free some space"):
        assert len(client("a").text) == 100_000
    assert len(cache) == 0


def test_a_foreign_lock_loses_no_paid_reply(path):
    client = Client(long_reply, name="m", cache=Cache(path))
    with (
        locked(path),
        pytest.warns(UserWarning, match=r"not kept; .* another program has held the cache for more than 0.05 s"),
    ):
        assert len(client("a").text) == 100_000
    assert not client("a").cached  # it was not kept, so it is paid again, as the warning says
    assert client("a").cached


def test_a_foreign_lock_refuses_a_call_that_a_kept_budget_cannot_count(path):
    calls = []
    budget = Budget(calls=9, kept=Cache(path))
    client = Client(lambda messages: calls.append(1) or "ok", budget=budget)
    with locked(path), pytest.raises(CacheError, match="another program has held the cache"):
        client("a")
    assert calls == []
    assert client("a").text == "ok"
    assert budget.calls == 1


def test_a_lock_that_comes_while_the_call_runs_keeps_its_reservation(path):
    cache = Cache(path)
    held = []

    def model(messages, **options):
        held.append(locked(path).thing)
        return Completion(text="ok", usage=Usage(prompt_tokens=1, completion_tokens=2))

    budget = Budget(tokens=1000, kept=cache)
    with pytest.warns(UserWarning, match="its reservation counts in its place"):
        assert Client(model, budget=budget)("a", max_tokens=5).text == "ok"
    held[0].close()
    assert budget.tokens > 3
    assert budget._queue._in_flight == 0


def test_spending_that_cannot_be_read_is_not_nothing(path):
    budget = Budget(calls=1, kept=Cache(path))
    client = Client(lambda messages: "ok", budget=budget)
    client("a")
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("ALTER TABLE spent RENAME COLUMN tokens TO others")
    with pytest.raises(CacheError, match="no such column"):
        client("a")


@pytest.mark.parametrize("mode", ["read_write", "replay"])
def test_a_damaged_file_is_one_error_before_anything_is_paid(path, mode):
    path.write_bytes(b"this is no database" * 1000)
    with pytest.raises(CacheError, match=r"not a database; the file is damaged or no cache; delete it"):
        Cache(path, mode=mode)


def test_a_file_that_is_damaged_meanwhile_is_one_error_before_anything_is_paid(path):
    calls = []

    def model(messages):
        calls.append(1)
        return "x" * 20_000

    cache = Cache(path)
    client = Client(model, name="m", cache=cache)
    for i in range(20):
        client(f"{i}")
    cache.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.raises(CacheError, match="malformed; the file is damaged"):
        client("0")
    assert len(calls) == 20


@pytest.mark.parametrize("row", ["", "[]", "{}", '{"text": "a", "usage": 1, "finish_reason": null}'])
def test_a_row_that_holds_no_reply_is_one_error(path, row):
    cache = Cache(path)
    client = Client(lambda messages: "ok", name="m", cache=cache)
    client("a")
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE replies SET reply = ?", (row,))
    with pytest.raises(CacheError, match=r"holds no reply .*; delete the row or the file"):
        client("a")


def test_a_lock_file_that_cannot_be_made_is_one_error(path):
    path.with_name(f"{path.name}.lock").mkdir()
    with pytest.raises(CacheError, match=r"lock cannot be used as a cache: Is a directory"):
        Cache(path)


def test_an_error_of_a_cache_is_one_of_a_model_and_of_a_value():
    assert issubclass(CacheError, ModelError)
    assert issubclass(CacheError, ValueError)


def test_what_headers_tell_apart_shares_no_reply(path):
    key = "sk-of-the-gateway-0123456789"
    with Server() as server:

        def ask(**headers):
            model = OpenAIModel("m", base_url=server.url, api_key="k", headers=headers)
            return Client(model, cache=Cache(path))("a").cached

        assert not ask()
        assert not ask(**{"X-Provider": "one", "X-Provider-Key": key})
        assert not ask(**{"X-Provider": "two", "X-Provider-Key": key})
        assert ask(**{"x-provider-key": key, "x-provider": "two"})  # names in any case and order
        assert ask()
        # Who pays has no say in what is answered.
        assert ask(Authorization="Bearer another")
        assert len(server.requests) == 3
    found = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"replies" in found
    assert key.encode() not in found
    assert b"two" not in found
