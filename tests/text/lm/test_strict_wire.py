"""What a server may not do: lead elsewhere, take longer than it may, send more than it may, or show a secret."""

import asyncio
import time

import pytest

from gradspec.text.lm import Cache, Client, ModelError, ModelTimeoutError, OpenAIModel, StatusError
from text.lm.server import HUGE, Server

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"


def plainly(model, *args, **options):
    return model(*args, **options)


def asynchronously(model, *args, **options):
    return asyncio.run(model.acall(*args, **options))


both_worlds = pytest.mark.parametrize("call", [plainly, asynchronously])


def model_of(server, **settings):
    return OpenAIModel("echo", base_url=server.url, **settings)


@both_worlds
def test_a_redirect_is_an_error_and_nothing_goes_elsewhere(call):
    with Server() as other, Server(faults=["redirect"]) as server:
        server.elsewhere = f"{other.url}/chat/completions"
        with pytest.raises(StatusError, match=r"status 307: .*redirect.*not followed") as caught:
            call(model_of(server, api_key=KEY), "a secret prompt")
        assert (len(server.requests), other.requests, server.paid) == (1, [], [])
    assert (caught.value.status, caught.value.retryable) == (307, False)


@pytest.mark.slow
@both_worlds
@pytest.mark.parametrize("fault", ["drip", "drip_error", "drip_head", "drip_status", "drip_informed", "drip_chunks"])
def test_the_timeout_is_that_of_the_whole_call(fault, call):
    with Server(faults=[fault]) as server:
        start = time.monotonic()
        with pytest.raises(ModelTimeoutError):
            call(model_of(server, timeout=0.5), "hi")
        assert time.monotonic() - start < 60  # the server drips for 500 s


@both_worlds
def test_an_error_is_not_read_without_end(call):
    with Server(faults=["huge_error"]) as server:
        with pytest.raises(StatusError, match="status 400: xxx"):
            call(model_of(server), "hi")
        assert server.sent < HUGE / 4  # what the sockets hold, and no more


@both_worlds
def test_headers_are_not_read_without_end(call):
    with Server(faults=["huge_head"]) as server, pytest.raises(ModelError, match="headers"):
        call(model_of(server), "hi")


@both_worlds
@pytest.mark.parametrize("kept", range(1, len(KEY)))
def test_a_secret_that_a_cut_parts_is_hidden(kept, call):
    # The message is cut at 500 characters: `kept` of those of the key come before the cut.
    said = f'{{"error": {{"message": "{"x" * (500 - kept)}{KEY} is wrong"}}}}'
    with Server(faults=[(401, said.encode())]) as server, pytest.raises(StatusError) as caught:
        call(model_of(server, api_key=KEY), "hi")
    assert KEY[:4] not in str(caught.value)


@both_worlds
def test_a_secret_that_the_end_of_what_is_read_parts_is_hidden(call):
    said = b"x" * (2**16 - 20) + KEY.encode() * 2
    with Server(faults=[(400, said)]) as server, pytest.raises(StatusError) as caught:
        call(model_of(server, api_key=KEY), "hi")
    assert KEY[:4] not in str(caught.value)


@both_worlds
@pytest.mark.parametrize("form", ['sk-"quoted"-and-\\slashed-0123', "sk-percent%encoded+0123456/=="])
def test_a_secret_is_hidden_in_each_form_that_a_server_may_give_it(form, call):
    import json
    from urllib.parse import quote

    for echoed in (json.dumps(form), quote(form, safe=""), repr(form)):
        with Server(faults=[(400, echoed.encode())]) as server, pytest.raises(StatusError) as caught:
            call(model_of(server, api_key=form), "hi")
        assert echoed.strip("\"'") not in str(caught.value)


@both_worlds
def test_the_word_of_a_header_is_hidden_where_the_server_gives_it_alone(call):
    with Server(faults=[(400, f"bad key {KEY}".encode())]) as server, pytest.raises(StatusError) as caught:
        call(model_of(server, headers={"X-Key": f"Token {KEY}"}), "hi")
    assert KEY not in str(caught.value)


@both_worlds
def test_a_reply_that_holds_the_key_is_neither_kept_nor_given_with_it(call, tmp_path):
    with Server(reply=lambda body: f"Your key is {KEY}, and ollama is a name.") as server:
        client = Client(model_of(server, api_key=KEY), cache=Cache(tmp_path / "replies.sqlite3"))
        first, again = call(client, "hi"), call(client, "hi")
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert again.cached
    assert first.text == again.text == "Your key is [secret], and ollama is a name."
    assert KEY.encode() not in kept


@both_worlds
def test_a_short_word_in_place_of_a_key_changes_no_reply(call):
    with Server(reply=lambda body: "ollama runs models") as server:
        assert call(model_of(server, api_key="ollama"), "hi").text == "ollama runs models"


@both_worlds
@pytest.mark.parametrize("form", ["chunked", "until_close"])
def test_a_reply_may_come_in_any_form_of_http(form, call):
    with Server(faults=[form], reply=lambda body: "here ä") as server:
        assert call(model_of(server), "hi").text == "here ä"


BROKEN = {
    "cut_chunks": (True, "broke off"),
    "no_http": (True, "not in HTTP"),
    "gzip": (False, "encoded as gzip"),
    "two_lengths": (True, "not in HTTP"),
    "shut": (True, "broke off"),
}


@both_worlds
@pytest.mark.parametrize("fault", BROKEN)
def test_what_is_no_reply_in_http_is_named(fault, call):
    retryable, says = BROKEN[fault]
    with Server(faults=[fault]) as server, pytest.raises(ModelError, match=says) as caught:
        call(model_of(server, timeout=60), "hi")
    assert caught.value.retryable == retryable


@both_worlds
def test_a_header_with_a_line_break_is_refused_and_not_shown(call):
    with Server() as server, pytest.raises(ValueError, match="X-Key") as caught:
        call(model_of(server, headers={"X-Key": f"{KEY}\r\nHost: elsewhere"}), "hi")
    assert KEY not in str(caught.value)


def test_a_connection_is_used_again_and_one_that_the_server_closed_is_not():
    with Server() as server:
        model = model_of(server)
        model("a")
        model("b")
        assert len(server.ports) == 1
        server.faults = ["until_close"]
        model("c")
        model("d")
        assert len(server.ports) == 2


@both_worlds
def test_a_request_that_is_too_long_for_the_server_is_an_error_or_a_broken_connection(call):
    with Server() as server:
        server.longest = 1000
        with pytest.raises(ModelError, match=r"status 413|broke off"):  # it does not wait for the rest
            call(model_of(server, timeout=60), "x" * 20_000_000)


def test_connections_that_were_idle_for_long_are_closed(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    with Server(delay=0.05) as server:
        model = model_of(server)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(model, map(str, range(8))))
        assert model._sockets.open > 1
        monkeypatch.setattr("gradspec.text.lm._sockets.IDLE", -1.0)
        model("again")
        assert model._sockets.open <= 1
