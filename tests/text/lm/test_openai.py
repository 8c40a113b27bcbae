"""OpenAI's protocol over a real connection: what is sent, what is read, and each fault, plain and async."""

import asyncio
import json
import threading
import time

import pytest

from gradspec.text.lm import (
    Client,
    ModelConnectionError,
    ModelTimeoutError,
    OpenAIModel,
    ReplyError,
    Retry,
    SchemaError,
    StatusError,
    Usage,
)
from text.lm.server import Server, refused_url

FAST = Retry(attempts=3, first_delay=0.01, max_delay=0.5, jitter=0.0)


def plainly(model, *args, **options):
    return model(*args, **options)


def asynchronously(model, *args, **options):
    return asyncio.run(model.acall(*args, **options))


both_worlds = pytest.mark.parametrize("call", [plainly, asynchronously])


def model_of(server, **settings):
    return OpenAIModel("echo", base_url=server.url, **settings)


@both_worlds
def test_a_completion(call):
    with Server(reply=lambda body: body["messages"][-1]["content"].upper()) as server:
        found = call(model_of(server), [{"role": "system", "content": "Shout."}, {"role": "user", "content": "hi é\n"}])
    assert (found.text, found.finish_reason) == ("HI É\n", "stop")
    assert found.usage == Usage(prompt_tokens=3, completion_tokens=2)


@both_worlds
def test_options_and_schema_go_into_the_body_as_they_are(call):
    schema = {"type": "object"}
    with Server() as server:
        call(model_of(server), "hi", schema=schema, temperature=0.5, top_k=40, stop=["\n"])
    assert server.requests == [
        {
            "model": "echo",
            "messages": [{"role": "user", "content": "hi"}],
            "temperature": 0.5,
            "top_k": 40,  # llama.cpp's and vLLM's own
            "stop": ["\n"],
            "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}},
        }
    ]


@both_worlds
def test_ten_megabytes(call):
    text = "ä" * (5 * 2**20)
    with Server(reply=lambda body: text) as server:
        assert call(model_of(server), "much").text == text
        with pytest.raises(ReplyError, match="longer than max_reply_bytes=1000000"):
            call(model_of(server, max_reply_bytes=1_000_000), "too much")


@both_worlds
def test_a_server_that_counts_no_tokens(call):
    with Server(usage=False) as server:
        assert call(model_of(server), "hi").usage is None


FAULTS = {
    "reset": (ModelConnectionError, "cannot be reached, or broke off"),
    "hang": (ModelTimeoutError, r"did not answer within 2\.5 s; raise timeout"),
    "truncated": (ModelConnectionError, "broke off"),
    "malformed": (ReplyError, 'not a chat completion .JSONDecodeError.; it begins with \'{"id"'),
    "not_json": (ReplyError, "it begins with '<html>"),
    "drip": (ModelTimeoutError, r"did not answer within 2\.5 s"),
    400: (StatusError, "answered with status 400: scripted 400"),
    401: (StatusError, "401"),
    404: (StatusError, "404"),
    408: (StatusError, "408"),
    409: (StatusError, "409"),
    422: (StatusError, "422"),
    429: (StatusError, "429"),
    500: (StatusError, "500"),
    503: (StatusError, "503"),
}
#: Of the faults that only a timeout ends; any other answer is waited for.
# Long enough for a server on a busy machine to read the request.
TIMEOUTS = dict.fromkeys(("hang", "drip"), 2.5)
#: All faults: those are for the slow tier, and one that hangs is in the quick one of the fault matrix.
BY_TIER = [pytest.param(fault, marks=pytest.mark.slow) if fault in TIMEOUTS else fault for fault in FAULTS]
PASSING = ("reset", "hang", "truncated", "drip", 408, 409, 429, 500, 503)


@both_worlds
@pytest.mark.parametrize("fault", BY_TIER)
def test_a_fault_is_named(fault, call):
    kind, says = FAULTS[fault]
    with Server(faults=[fault]) as server:
        with pytest.raises(kind, match=says) as caught:
            call(model_of(server, timeout=TIMEOUTS.get(fault, 60)), "hi")
        assert caught.value.retryable == (fault in PASSING)
        assert "'echo' at http://127.0.0.1:" in str(caught.value)
        assert (len(server.requests), server.paid) == (1, [])


@both_worlds
@pytest.mark.parametrize("fault", BY_TIER)
def test_only_a_passing_fault_is_retried_and_a_reply_is_paid_once(fault, call):
    with Server(faults=[fault, fault]) as server:
        client = Client(model_of(server, timeout=2.0), retry=FAST)
        if fault in PASSING:
            assert len(call(client, "hi").text) == 64
            assert (len(server.requests), len(server.paid)) == (3, 1)
        else:
            with pytest.raises(FAULTS[fault][0]):
                call(client, "hi")
            assert (len(server.requests), len(server.paid)) == (1, 0)


@both_worlds
def test_a_refused_connection_is_retried_and_then_named(call):
    with pytest.raises(ModelConnectionError, match="cannot be reached") as caught:
        call(Client(OpenAIModel("echo", base_url=refused_url()), retry=FAST), "hi")
    assert "given up after 3 calls" in caught.value.__notes__[0]
    assert isinstance(caught.value, ConnectionError)


@both_worlds
@pytest.mark.parametrize("header", [{"Retry-After": "0.3"}, {"retry-after-ms": "300"}])
def test_the_server_says_how_long_to_wait(header, call):
    with Server(faults=[(429, header)]) as server:
        with pytest.raises(StatusError, match=r"It asks to wait 0.3 s") as caught:
            call(model_of(server), "hi")
        assert caught.value.retry_after == pytest.approx(0.3)
        server.faults = [(429, header)]
        start = time.monotonic()
        call(Client(model_of(server), retry=FAST), "hi")
        assert time.monotonic() - start >= 0.3  # a lower bound: a wait, not a speed


@both_worlds
def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for(call):
    with Server(faults=[(429, {"Retry-After": "3600"})]) as server:
        with pytest.raises(StatusError, match="It asks to wait 3600 s"):
            call(Client(model_of(server), retry=FAST), "hi")
        assert len(server.requests) == 1


def test_retry_after_may_be_a_date():
    from datetime import UTC, datetime, timedelta
    from email.utils import format_datetime

    from gradspec.text.lm._wire import retry_after

    soon = datetime.now(UTC) + timedelta(seconds=100)
    assert 90 < retry_after({"retry-after": format_datetime(soon, usegmt=True)}) <= 100
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert [retry_after({"retry-after": junk}) for junk in ("", "soon", "nan", "inf")] == [None] * 4


@both_worlds
def test_the_deadline_bounds_all_attempts_together(call):
    with Server(faults=["hang"] * 9) as server:
        client = Client(model_of(server, timeout=60), retry=Retry(attempts=9, first_delay=0.01, deadline=0.5))
        with pytest.raises(ModelTimeoutError):
            call(client, "hi")
        assert len(server.requests) == 1  # the first call may take all of it, and none follows


@both_worlds
def test_a_reply_of_the_wrong_schema_is_asked_for_again_and_told_why(call):
    replies = iter(['{"score": "high"}', '```json\n{"score": 7}\n```'])
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
    with Server(reply=lambda body: next(replies)) as server:
        found = call(Client(model_of(server)), "Rate it.", schema=schema)
    assert found.value == {"score": 7}
    assert [len(r["messages"]) for r in server.requests] == [1, 3]
    assert '$.score is "high", not of type integer' in server.requests[1]["messages"][2]["content"]


@both_worlds
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_reply_that_stays_wrong_is_an_error_after_as_many_attempts_as_configured(attempts, call):
    with Server(reply=lambda body: "certainly!") as server:
        with pytest.raises(SchemaError, match=r"not JSON.*begins with 'certainly!'") as caught:
            call(Client(model_of(server), schema_attempts=attempts), "Rate it.", schema={"type": "object"})
        assert len(server.requests) == attempts
        assert caught.value.text == "certainly!"


@pytest.mark.parametrize("message", [{"content": None, "refusal": "No."}, {"content": None}, {"content": 3}, {}])
def test_a_reply_without_text_is_named(message):
    from gradspec.text.lm._wire import completion

    says = (
        r"the model refused: No\." if message.get("refusal") else "the reply has no text; it ended with .*'tool_calls'"
    )
    with pytest.raises(ReplyError, match=says):
        completion(json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode())


def completed(message, reason="stop"):
    from gradspec.text.lm._wire import completion

    return completion(json.dumps({"choices": [{"message": message, "finish_reason": reason}]}).encode())


def test_a_text_in_parts_is_one_text():
    parts = [{"type": "text", "text": "Yes"}, {"type": "text", "text": ", it is."}]
    assert completed({"content": parts}).text == "Yes, it is."


CALL = {"id": "c", "type": "function", "function": {"name": "look\nup", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "reason", "says"),
    [
        ({"content": ""}, "length", "it ended with finish_reason 'length'"),
        ({"content": ""}, "content_filter", "it ended with finish_reason 'content_filter'"),
        ({"content": None, "tool_calls": [CALL, CALL]}, "tool_calls", r"it calls a tool, look\nup, look\nup: "),
        ({"content": "", "tool_calls": [{}]}, "tool_calls", "it calls a tool, without a name: "),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, 3]}, "stop", "parts that are not text: image"),
        ({"content": None, "refusal": "No.\n\x1b[31m"}, "stop", r"the model refused: No.\n\x1b[31m"),
    ],
)
def test_a_reply_without_text_says_what_it_has_instead(message, reason, says):
    with pytest.raises(ReplyError) as caught:
        completed(message, reason)
    assert str(caught.value).startswith("the reply has no text; ")
    assert says in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_model_may_say_nothing():
    assert completed({"content": ""}).text == ""
    assert completed({"content": "", "tool_calls": None}, None).text == ""


@pytest.mark.parametrize(
    ("status", "headers", "body", "says"),
    [
        (400, {}, "one\ntwo\r\x1b[31m\0", r"answered with status 400: one\ntwo\r\x1b[31m\x00"),
        (429, {"retry-after": "2"}, "slow down", "status 429: slow down. It asks to wait 2 s."),
        (429, {"retry-after": "2"}, "Slow down!", "status 429: Slow down! It asks to wait 2 s."),
        (304, {}, "", "answered with status 304: nothing"),
        (302, {"location": "http://a/\x1b[31m"}, "", r"a redirect to http://a/\x1b[31m, which is not followed"),
    ],
)
def test_what_a_server_says_is_one_line_that_steers_nothing(status, headers, body, says):
    from gradspec.text.lm._http import Reply
    from gradspec.text.lm._secrets import Secrets
    from gradspec.text.lm._wire import status_error

    reply = Reply(limit=1 << 20)
    reply.status, reply.headers = status, headers
    reply.body = bytearray(json.dumps({"error": {"message": body}}).encode() if body else b"")
    said = str(status_error(reply, where="here", secrets=Secrets(key=None, headers={})))
    assert says in said
    assert said.isprintable()


@pytest.mark.parametrize("url", ["http://localhost:99999/v1", "http://me:sec/ret@localhost/v1", "http://[::1/v1"])
def test_an_address_with_a_wrong_port_is_named_and_not_repeated(url):
    with pytest.raises(ValueError, match=r"^base_url (has a port that is not|is not an address)") as caught:
        OpenAIModel("m", base_url=url)
    assert "sec" not in str(caught.value)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": 3}]}', b"\xff", b"[" * 99999]
)
def test_a_reply_that_is_no_completion_is_named(body):
    from gradspec.text.lm._wire import completion

    with pytest.raises(ReplyError, match="not a chat completion"):
        completion(body)


def test_one_model_serves_several_event_loops_and_closes_its_connections():
    with Server() as server:
        model = model_of(server)
        texts = {asynchronously(model, "hi").text for _ in range(3)}  # an unclosed socket is a warning, hence an error
        assert len(texts) == 1
        assert model._streams.loops == 0


def test_the_calls_of_one_loop_are_in_flight_together():
    async def all_at_once(model):
        return await asyncio.gather(*(model.acall(f"{i}") for i in range(8)))

    together = threading.Barrier(8, timeout=60)
    with Server(delay=lambda: 0.0 * together.wait()) as server:
        asyncio.run(all_at_once(model_of(server)))
        assert server.peak == 8


@pytest.mark.parametrize("name", ["api_key", "extra_headers", "extra_body", "stream", "timeout", "n", "model"])
def test_what_is_no_option_is_refused(name):
    with pytest.raises(TypeError, match=f"'{name}' is not an option of a call; "):
        OpenAIModel("echo", base_url="http://localhost:1/v1")("hi", **{name: 1})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"base_url": "localhost:11434"}, "http or https address"),
        ({"base_url": "http://localhost:1/v1", "timeout": 0}, "timeout is a number of seconds above 0, not 0"),
        ({}, "pass api_key, or set OPENAI_API_KEY"),
    ],
)
def test_wrong_settings_are_named(settings, says, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=says):
        OpenAIModel("echo", **settings)


def test_a_model_that_nobody_has_any_more_closes_its_connections():
    with Server() as server:
        model = OpenAIModel("echo", base_url=server.url)
        model("hello")
        sockets = model._sockets
        assert sockets.open == 1
        del model
        assert sockets.open == 0
