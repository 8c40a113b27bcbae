"""A pass in which one call meets each kind of fault: in time, all or nothing, nothing leaked, nothing paid twice."""

import json
import threading
import time
from collections import Counter

import pytest

from gradspec.text import Called, Variable, watch
from gradspec.text.lm import Budget, Cache, Client, ModelError, ModelTimeoutError, OpenAIModel, Retry
from gradspec.text.lm._errors import is_retryable
from text.lm import chats
from text.lm.server import Server, digest

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
#: What a call may take: enough for a sound one on a busy machine.
TIMEOUT = 5.0
#: The most that it takes: far more, for a busy machine, and far less than the 500 s for which a server drips.
LATEST = 60.0
SEED = Variable("shorter")
ONCE = Retry(attempts=1)

#: kind: the fault of the server's, and whether a second call may mend it
FAULTS = {
    "reset": ("reset", True),
    "closed": ("shut", True),
    "hangs": ("hang", True),
    "cut": ("truncated", True),
    "cut chunks": ("cut_chunks", True),
    "half of the JSON": ("malformed", False),
    "no JSON": ("not_json", False),
    "no HTTP": ("no_http", True),
    "two lengths": ("two_lengths", True),
    "another encoding": ("gzip", False),
    "body drips": ("drip", True),
    "chunks drip": ("drip_chunks", True),
    "error drips": ("drip_error", True),
    "headers drip": ("drip_head", True),
    "headers never end": ("drip_status", True),
    "interim answers without end": ("drip_informed", True),
    "huge error": ("huge_error", False),
    "huge headers": ("huge_head", False),
    "redirect": ("redirect", False),
    "error that repeats the key": ((401, f'{{"error": {{"message": "{"x" * 480}{KEY}"}}}}'.encode()), False),
    "deep error": ((400, b"[" * 60_000), False),
    "reply without choices": ((200, b'{"choices": []}'), False),
    "deep reply": ((200, b"[" * 100_000), False),
    "nothing": ((200, b""), False),
    **{f"status {status}": (status, False) for status in (400, 401, 404, 422)},
    **{f"status {status}": (status, True) for status in (408, 409, 429, 500, 503)},
}
#: What lasts until the time of a call is out; one of them is in the quick tier, and so are all faults that end.
LAST = ("body drips", "chunks drip", "error drips", "headers drip", "headers never end", "interim answers without end")


def test_there_are_at_least_24_kinds():
    assert len(FAULTS) >= 24


def model_of(server, timeout=TIMEOUT, **settings):
    model = OpenAIModel("echo", base_url=server.url, api_key=KEY, timeout=timeout, max_reply_bytes=2**20)
    return model, Client(model, **settings)


def told(parameters):
    return [p.grad and p.grad.data for p in parameters]


def ours():
    """Return the threads that passes and blocks have made."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("gradspec.text_")}


def leftover(before):
    """Return the threads that have come since and have not ended after a while."""
    ends = time.monotonic() + 60
    while found := ours() - before:
        if time.monotonic() > ends:
            return found
        time.sleep(0.01)
    return set()


@pytest.fixture(scope="module")
def wanted():
    with Server() as server:
        parameters, loss = chats.branches(model_of(server)[1])
        loss.backward(SEED)
    return told(parameters)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind in ("hangs", *LAST) else ()) for kind in FAULTS]
)
def test_a_fault_in_one_call_of_a_pass(kind, wanted, tmp_path):
    assert a_pass_with(kind, wanted, tmp_path) < LATEST


def a_pass_with(kind, wanted, tmp_path):
    """Run a pass in which one call meets a fault, then the pass again; return how long the call took that failed."""
    fault, passing = FAULTS[kind]
    with Server() as other, Server() as server:
        server.elsewhere = f"{other.url}/chat/completions"
        cache = Cache(tmp_path / "replies.sqlite3")
        budget = Budget(calls=1000, kept=cache)
        model, client = model_of(server, cache=cache, budget=budget, retry=ONCE)
        parameters, loss = chats.branches(client)
        paid, before = len(server.paid), ours()
        server.faults = [None, None, None, fault]  # of the first four calls on the way back, the last
        seen: list = []
        with pytest.raises(ModelError) as caught, watch(seen.append):
            loss.backward(SEED, max_concurrency=4)
        [took] = [event.seconds for event in seen if isinstance(event, Called) and event.error]

        assert told(parameters) == [None] * len(parameters)  # no half gradient
        assert is_retryable(caught.value) == passing
        if isinstance(caught.value, ModelTimeoutError):
            assert took > 0.9 * TIMEOUT
        assert KEY[:8] not in f"{caught.value} {caught.value.__notes__ if hasattr(caught.value, '__notes__') else ''}"
        assert other.requests == []

        loss.backward(SEED, max_concurrency=4)  # the graph is intact, and what was paid for is not paid again
        assert told(parameters) == wanted
        assert max(Counter(json.dumps(body) for body in server.paid).values()) == 1
        assert len(server.paid) - paid == 17
        assert budget.calls == len(server.requests)
        assert model._sockets.open <= 16
        assert leftover(before) == set()
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert KEY.encode() not in kept
        return took


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind in LAST else ())
        for kind, (_, passing) in FAULTS.items()
        if passing
    ],
)
def test_a_passing_fault_is_retried_and_changes_nothing(kind, wanted):
    with Server() as server:
        _, client = model_of(server, timeout=2.0, retry=Retry(attempts=3, first_delay=0.01))
        parameters, loss = chats.branches(client)
        server.faults = [None, FAULTS[kind][0]]
        loss.backward(SEED, max_concurrency=16)
        assert told(parameters) == wanted


LIES = {
    "negative": -(10**6),
    "infinite": float("inf"),
    "no number": "many",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_lies_about_its_tokens_does_not_lift_the_limit(lie, monkeypatch):
    def lying(body, text, usage=True):
        said = {"prompt_tokens": LIES[lie], "completion_tokens": 1}
        return {"choices": [{"message": {"content": digest(body)}}], "usage": said}

    monkeypatch.setattr("text.lm.server.completion", lying)
    with Server() as server:
        budget = Budget(tokens=5000)
        _, client = model_of(server, budget=budget, options={"max_tokens": 100})
        with pytest.raises(ModelError, match="of 5000 are left"):
            list(map(client, map(str, range(100))))
        assert 5000 / 300 < len(server.requests) <= 5000 / 100
        assert budget.tokens <= 5000
