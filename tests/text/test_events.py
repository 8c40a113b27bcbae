"""What is told of a run, to whom, and what is not."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter

import pytest

from gradspec.text import Called, JsonLines, Retried, Variable, concurrency, to_logger, watch
from gradspec.text.lm import Cache, Client, Completion, OpenAIModel, Retry, StatusError, Usage
from gradspec.text.ops import achat, chat, judge
from gradspec.text.ops import sum as total
from text.lm.server import Server

KEY = "sk-THE-KEY-of-the-user"


def leaf(text: str) -> Variable:
    return Variable(text, role="prompt", requires_grad=True)


def names(seen) -> Counter[str]:
    return Counter(event.name for event in seen)


@pytest.mark.parametrize("limit", [1, 8])
def test_each_call_step_and_commit_is_told_once(limit) -> None:
    seen: list = []
    client = Client(lambda messages: Completion(text="ok", usage=Usage(prompt_tokens=3, completion_tokens=1)), name="m")
    with watch(seen.append), concurrency(limit):
        loss = chat(client, total([chat(client, leaf(f"{i}")) for i in range(4)]))
        loss.backward(Variable("shorter"))
    assert names(seen) == {"call": 5 + 5, "backward_step": 6, "commit": 1}
    assert seen[-1].gradients == 4
    calls = [event for event in seen if isinstance(event, Called)]
    assert {event.input_tokens for event in calls} == {3}


def test_nothing_is_told_outside_of_the_block_nor_by_a_branch_of_which_nothing_was_said() -> None:
    seen: list = []
    client = Client(lambda messages: "<score>1</score>")
    with watch(seen.append):
        score, _ = judge(client, "task", chat(client, leaf("a")))
    score.backward()
    assert names(seen) == {"call": 2}
    with watch(seen.append):
        judge(client, "task", chat(client, leaf("a")))[0].backward()
    assert names(seen) == {"call": 4, "backward_step": 1, "commit": 1}  # a success: the model is not asked for feedback


def test_retries_failures_and_cache_hits() -> None:
    seen: list = []
    with Server(faults=[429, "reset"]) as server:
        model = OpenAIModel("echo", base_url=server.url, api_key=KEY)
        client = Client(model, cache=Cache(":memory:"), retry=Retry(first_delay=0.0))
        with watch(seen.append):
            client("a secret prompt")
            client("a secret prompt")
    assert [event.name for event in seen] == ["call", "retry", "call", "retry", "call", "cache_hit"]
    assert [event.error for event in seen if isinstance(event, Called)] == ["StatusError", "ModelConnectionError", None]
    assert [event.attempt for event in seen if isinstance(event, Retried)] == [1, 2]
    assert seen[4].attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "echo",
        "gen_ai.client.operation.duration": seen[4].seconds,
        "gen_ai.provider.name": "openai",
        "server.address": "127.0.0.1",
        "server.port": int(model.base_url.rpartition(":")[2].partition("/")[0]),
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 1,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.model": "echo",
        "gen_ai.response.id": "chatcmpl-1",
    }
    assert "error.type" in seen[0].attributes
    assert not any(word in str([vars(event) for event in seen]) for word in (KEY, "secret prompt"))


#: What OpenTelemetry calls the attributes of a call of a model (opentelemetry-semantic-conventions 0.66b2).
NAMES = {
    "error.type",
    "gen_ai.client.operation.duration",
    "gen_ai.operation.name",
    "gen_ai.output.type",
    "gen_ai.provider.name",
    "gen_ai.request.max_tokens",
    "gen_ai.request.model",
    "gen_ai.request.seed",
    "gen_ai.request.temperature",
    "gen_ai.request.top_p",
    "gen_ai.response.finish_reasons",
    "gen_ai.response.id",
    "gen_ai.response.model",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "server.address",
    "server.port",
}


def test_what_was_asked_for_is_told_under_the_names_of_the_conventions() -> None:
    seen: list = []
    asked = {"temperature": 0.5, "max_tokens": 9, "top_p": 1, "seed": 3, "schema": {"type": "integer"}}
    with Server(reply=lambda body: "7", faults=[None, 400]) as server, watch(seen.append):
        model = OpenAIModel("echo", base_url=server.url)
        model_of = Client(model, retry=Retry(attempts=1))
        model_of("a", **asked)
        with pytest.raises(StatusError):
            model_of("a", temperature="high", max_tokens=None)
    assert {name for event in seen for name in event.attributes} == NAMES
    told = {name.rpartition(".")[2]: value for name, value in seen[0].attributes.items() if ".request." in name}
    assert told == {"model": "echo", "temperature": 0.5, "max_tokens": 9, "top_p": 1, "seed": 3}
    assert seen[0].output_type == "json"
    assert (seen[1].temperature, seen[1].max_tokens) == (None, None)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ({"model": "echo-2026-01-01", "id": "r1"}, ("echo-2026-01-01", "r1")),
        ({}, (None, None)),
        ({"model": 7, "id": ["r1"]}, (None, None)),
        ({"model": f"echo {KEY}", "id": "r" * 1000}, ("echo [secret]", "r" * 197 + "...")),
    ],
    ids=["another version", "nothing", "no words", "too much"],
)
def test_who_answered_is_told_in_the_words_of_the_server(says, told, tmp_path) -> None:
    reply = json.dumps({"choices": [{"message": {"content": "ok"}}], **says}).encode()
    seen: list = []
    with Server(faults=[(200, reply)]) as server, watch(seen.append):
        client = Client(
            OpenAIModel("echo", base_url=server.url, api_key=KEY), cache=Cache(tmp_path / "replies.sqlite3")
        )
        found, kept = client("a"), client("a")
    assert (seen[0].response_model, seen[0].response_id) == (found.model, found.id) == (kept.model, kept.id) == told
    assert seen[0].model == "echo"


def test_on_an_event_loop_too() -> None:
    seen: list = []

    async def main() -> None:
        with watch(seen.append):
            answer = await achat(Client(lambda messages: "ok"), leaf("a"))
            await answer.backward_async(Variable("g"), max_concurrency=4)

    asyncio.run(main())
    assert names(seen) == {"call": 2, "backward_step": 1, "commit": 1}


def test_a_plain_model_is_told_of_too() -> None:
    seen: list = []
    with watch(seen.append):
        chat(lambda messages: "ok", leaf("a"))
    assert (names(seen), seen[0].model) == ({"call": 1}, "model")


def test_a_sink_that_fails_loses_no_reply(caplog) -> None:
    def broken(event):
        raise OSError("disk full")

    with caplog.at_level(logging.ERROR, logger="gradspec.text"), watch(broken):
        assert chat(lambda messages: "ok", leaf("a")).data == "ok"
    assert "a sink failed at the event call" in caplog.text
    with pytest.raises(TypeError, match="a sink is a callable"), watch("file.jsonl"):  # type: ignore[arg-type]
        pass


def test_a_file_of_whole_lines(tmp_path) -> None:
    path = tmp_path / "events.jsonl"
    with watch(JsonLines(path)), concurrency(16):
        answers = [chat(lambda messages: "ok", leaf(f"{i}")) for i in range(64)]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert (len(lines), len(answers)) == (64, 64)
    assert lines[0]["event"] == "call"
    assert path.stat().st_mode & 0o077 == 0


def test_a_logger(caplog) -> None:
    with caplog.at_level(logging.INFO, logger="mine"), watch(to_logger("mine")):
        chat(lambda messages: "ok", leaf("a"))
    assert caplog.records[0].getMessage().startswith("call gen_ai.request.model=model")
    assert caplog.records[0].event["gen_ai.operation.name"] == "chat"
