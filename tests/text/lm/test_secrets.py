"""A key is sent to its server and goes nowhere else."""

import asyncio
import copy
import logging
import pickle
import traceback

import pytest

from gradspec.text.lm import Cache, Client, ModelError, OpenAIModel, Retry
from text.lm.server import Server

KEY = "sk-THE-KEY-of-the-user"
HEADER = "THE-HEADER-of-the-gateway"


def model_of(server, **settings):
    return OpenAIModel("echo", base_url=server.url, api_key=KEY, headers={"X-Gateway": HEADER}, timeout=0.3, **settings)


def assert_clean(text):
    assert KEY not in text
    assert HEADER not in text


def test_the_server_gets_both():
    with Server() as server:
        model_of(server)("hi")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["x-gateway"] == HEADER


def test_no_repr_copy_or_pickle_has_them(tmp_path):
    with Server() as server:
        model = model_of(server)
        client = Client(model, cache=Cache(tmp_path / "replies.sqlite3"))
        client("hi")
        asyncio.run(client.acall("ho"))
        assert_clean(f"{model!r} {client!r} {vars(client)} {vars(model)} {model.identity} {copy.deepcopy(model)!r}")
        for held in (model, client):
            with pytest.raises(TypeError, match="holds a key and is not pickled"):
                pickle.dumps(held)


def test_no_file_of_the_cache_has_them(tmp_path):
    with Server() as server:
        Client(model_of(server), cache=Cache(tmp_path / "replies.sqlite3"))("hi", user="me")
        files = list(tmp_path.iterdir())
        stored = b"".join(path.read_bytes() for path in files)
    assert len(files) >= 2
    assert b'"user":"me"' in stored  # what is kept is there in plain text: the search can find
    assert KEY.encode() not in stored
    assert HEADER.encode() not in stored


@pytest.mark.parametrize("fault", ["reset", "hang", "truncated", "not_json", 401, 429, 500, "echoed"])
@pytest.mark.parametrize("call", [OpenAIModel.__call__, lambda *a: asyncio.run(OpenAIModel.acall(*a))])
def test_no_error_has_them_nor_what_it_was_made_of(fault, call, monkeypatch):
    if fault == "echoed":  # OpenAI's own 401 says which key was wrong
        said = f'{{"error": {{"message": "Incorrect API key provided: {KEY} via {HEADER}"}}}}'
        monkeypatch.setattr("text.lm.server.error", lambda status: said.encode())
    with Server(faults=[401 if fault == "echoed" else fault]) as server, pytest.raises(ModelError) as caught:
        call(model_of(server), "hi")
    error = caught.value
    assert_clean("".join(traceback.format_exception(error)) + repr(vars(error)))
    assert error.__cause__ is None
    assert error.__context__ is None  # the library's error holds the request, and the request the key
    if fault == "echoed":
        assert "Incorrect API key provided: [secret] via [secret]" in str(error)


def test_a_secret_in_a_reply_that_cannot_be_read_is_hidden_too(monkeypatch):
    with Server(reply=lambda body: KEY, faults=["malformed"]) as server:
        monkeypatch.setattr("text.lm.server.completion", lambda *_: f"{KEY} {KEY}")
        with pytest.raises(ModelError, match=r"\[secret\]") as caught:
            model_of(server)("hi")
    assert_clean(str(caught.value))


def test_no_log_has_them_at_any_level(caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx2", "httpcore2", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    with Server(faults=[429, "reset"]) as server:
        client = Client(model_of(server), retry=Retry(first_delay=0.0))
        client("hi")
        asyncio.run(client.acall("ho"))
    assert caplog.records  # the libraries do log: there is something to search
    assert_clean(caplog.text + "".join(str(vars(record)) for record in caplog.records))


@pytest.mark.parametrize("custom", ["", f"X-Mine: {HEADER}\nAuthorization: Bearer {KEY}"], ids=["", "custom headers"])
@pytest.mark.parametrize("call", [OpenAIModel.__call__, lambda *a: asyncio.run(OpenAIModel.acall(*a))])
def test_openais_key_is_not_sent_to_another_server(call, custom, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", HEADER)
    monkeypatch.setenv("OPENAI_PROJECT_ID", HEADER)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", custom)
    with Server() as server:
        call(OpenAIModel("echo", base_url=server.url), "hi")
    assert_clean(str(server.headers))
    assert not {"authorization", "openai-organization", "openai-project", "x-mine"} & set(server.headers[0])


def test_a_key_that_is_given_prevails_over_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"Authorization: Bearer {KEY}")
    with Server() as server:
        OpenAIModel("echo", base_url=server.url, api_key="mine")("hi")
        OpenAIModel("echo", base_url=server.url, headers={"AUTHORIZATION": "Basic mine"})("hi")
    assert [headers["authorization"] for headers in server.headers] == ["Bearer mine", "Basic mine"]


def test_both_variables_together_name_a_server_and_its_key(monkeypatch):
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        model = OpenAIModel("echo")
        model("hi")
    assert model.identity["base_url"] == server.url
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("url", [f"http://me:{KEY}@localhost/v1", f"http://localhost/v1?key={KEY}", f"ftp://{KEY}"])
def test_a_secret_in_the_address_is_refused_and_not_repeated(url):
    with pytest.raises(ValueError, match="base_url") as caught:
        OpenAIModel("echo", base_url=url)
    assert_clean(str(caught.value))
