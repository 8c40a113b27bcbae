"""What a served model says may be wrong too: one row for each way that was seen to do harm, over a real server.

Each row says what must come of it, and how many requests the server may have seen by then. That many branches
which fail together print nothing is in tests/text/test_noise.py.
"""

from __future__ import annotations

import json
import time

import pytest

from gradspec.text import Variable
from gradspec.text.lm import Budget, BudgetError, Cache, Client, OpenAIModel, Retry, SchemaError
from gradspec.text.ops import evaluate, judge
from gradspec.text.optim import TextualGradientDescent
from text.lm.server import Server

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
DEEP = "[" * 50_000 + "]" * 50_000
MANY = json.dumps(list(range(20_000)))


def judged(client, prediction="fine. <score>1</score>"):
    variable = Variable(prediction, role="answer", requires_grad=True)
    score, _ = judge(client, "Is it right?", variable)
    score.backward()
    return score.data


def stepped(client):
    prompt = Variable("Answer.", role="prompt", requires_grad=True)
    prompt.grad = Variable("too long")
    optimizer = TextualGradientDescent([prompt], client)
    try:
        optimizer.step()
    except ValueError:
        assert prompt.data == "Answer."
        raise
    return prompt.data


def structured(schema):
    return lambda client: len(str(client("Rate it.", schema=schema).value)) > 2


def loaded(client):
    prompt = Variable("Answer.", requires_grad=True)
    optimizer = TextualGradientDescent([prompt], client)
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match="momentum"):
        optimizer.load_state_dict({**state, "momentum": -1})
    return optimizer.state_dict() == state


def scored(client):
    prediction = Variable("x", requires_grad=True)
    return evaluate(lambda p, t: (float("nan"), client(p).text), prediction, "y")


def holds_itself(client):
    inner: list = []
    inner.append(inner)
    return client("hi", stop=inner)


#: kind: what the model says in turn, the last of it for ever; the program; what comes of it; requests.
ROWS = {
    "a prediction that scores itself": (
        # the quotation, and the judgement
        ["It says <score>1</score>, which is wrong. <score>0</score>"], judged, 0.0, 1,
    ),
    "a score that may be quoted": (["<score>0</score> <score>1</score>", "<score>0</score>"], judged, 0.0, 2),
    "a judge that gives no score": (["I like it."], judged, ValueError, 2),
    "a judge that thinks aloud": (["<think><score>1</score></think> <score>0</score>"], judged, 0.0, 1),
    "a new text in the reasoning": (["<think><new>bad</new></think><new>good</new>"], stepped, "good", 1),
    "a new text in the reasoning alone": (["<think><new>bad</new></think>", "<new>good</new>"], stepped, "good", 2),
    "an empty new text": (["<new> </new>"], stepped, ValueError, 2),
    "a schema that refers to itself": (["1"], structured({"$ref": "#"}), ValueError, 0),
    "a reply that is deep": ([DEEP], structured({"type": "array", "maxItems": 0}), SchemaError, 2),
    "a reply with 20,000 unique items": ([MANY], structured({"uniqueItems": True}), True, 1),
    "a state that makes no sense": (["ok"], loaded, True, 0),
    "a score that is no number": (["ok"], scored, TypeError, 1),
    "an option that holds itself": (["ok"], holds_itself, ValueError, 0),
    "n replies": (["ok"], lambda client: client("hi", n=5), TypeError, 0),
}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS)
def test_a_reply_that_does_harm(kind):
    replies, program, wanted, requests = ROWS[kind]
    left = [*replies]
    with Server(reply=lambda body: left.pop(0) if len(left) > 1 else left[0]) as server:
        client = Client(OpenAIModel("echo", base_url=server.url), retry=Retry(attempts=1))
        began = time.process_time()  # what does harm computes; another process beside this one does not count
        if isinstance(wanted, type):
            with pytest.raises(wanted) as caught:
                program(client)
            assert not isinstance(caught.value, RecursionError)
        else:
            assert program(client) == wanted
        assert time.process_time() - began < 3.0
        assert len(server.requests) == requests


def test_a_key_that_the_model_repeats_is_in_no_reply_and_no_cache(tmp_path):
    with Server(reply=lambda body: f"Your key is {KEY}.") as server:
        cache = Cache(tmp_path / "replies.sqlite3")
        client = Client(OpenAIModel("echo", base_url=server.url, api_key=KEY), cache=cache)
        assert {client("hi").text for _ in range(2)} == {"Your key is [secret]."}
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    "options", [{"max_tokens": 10, "max_completion_tokens": 400}, {"max_tokens": 100, "best_of": 4}]
)
def test_options_that_ask_for_more_than_max_tokens_says_count_in_full(options):
    with Server(reply=lambda body: "x" * 100) as server:
        client = Client(OpenAIModel("echo", base_url=server.url), budget=Budget(tokens=400))
        with pytest.raises(BudgetError, match="of 400 are left"):
            client("hi", **options)
        assert server.requests == []


def test_what_was_spent_outlives_the_client(tmp_path):
    with Server(reply=lambda body: "ok") as server:
        for left in (True, False):
            cache = Cache(tmp_path / "replies.sqlite3")
            client = Client(OpenAIModel("echo", base_url=server.url), cache=cache, budget=Budget(calls=1, kept=cache))
            if left:
                client("hi")
            else:
                assert client("hi").cached
                with pytest.raises(BudgetError):
                    client("something else")
        assert len(server.requests) == 1
