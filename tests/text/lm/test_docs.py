"""What the pages on language models show is what happens."""

import doctest
import re
from pathlib import Path

import pytest

from gradspec.text.lm import ModelConnectionError, OpenAIModel, ReplyError, StatusError
from text.lm.server import Server

DOCS = Path(__file__).parents[3] / "docs"
HOW_TO = (DOCS / "how-to" / "local-language-model.md").read_text(encoding="utf-8")


def test_every_example_of_the_page_on_models_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "text" / "models.md").read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "models.md", "models.md", 0)
    said = []
    found = doctest.DocTestRunner().run(test, out=said.append)
    assert not found.failed, "".join(said)
    assert found.attempted == page.count(">>> ")


def test_the_how_to_runs_against_a_server(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    blocks = re.findall(r"```python\n(.*?)```", HOW_TO, re.DOTALL)
    assert len(blocks) == 3
    with Server(reply=lambda body: '{"prime": 7}' if "response_format" in body else "7") as server:
        names = {}
        assert "".join(blocks).count("http://localhost:11434/v1") == 2
        for block in blocks:
            exec(compile(block.replace("http://localhost:11434/v1", server.url), "how-to", "exec"), names)
    assert capsys.readouterr().out == "7\nUsage(prompt_tokens=4, completion_tokens=1)\nFalse True\n{'prime': 7}\n"
    assert len(server.requests) == 3
    assert server.requests[2]["response_format"]["type"] == "json_object"
    assert "authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("said", "faults", "kind"),
    [
        ("cannot be reached", ["reset"], ModelConnectionError),
        ("status 404", [404], StatusError),
        ("did not answer within", ["hang"], TimeoutError),
    ],
)
def test_the_errors_that_the_how_to_explains_are_said_so(said, faults, kind):
    assert f"`{said}`" in HOW_TO
    with Server(faults=faults) as server, pytest.raises(kind, match=said):
        OpenAIModel("llama3.2", base_url=server.url, timeout=0.2 if faults == ["hang"] else 60)("hi")


def test_a_reply_without_text_is_said_as_the_how_to_explains(monkeypatch):
    empty = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    monkeypatch.setattr("text.lm.server.completion", lambda *_: empty)
    assert "`the reply has no text`" in HOW_TO
    with Server() as server, pytest.raises(ReplyError, match="the reply has no text"):
        OpenAIModel("llama3.2", base_url=server.url)("hi")
