"""One wrong call of each public function: an error of one line that names what was given, before any model is asked."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradspec.text import (
    JsonLines,
    Variable,
    backward,
    concurrency,
    defer,
    gather,
    get_gradient_edge,
    grad,
    mermaid,
    progress,
    set_grad_enabled,
    to_logger,
    tree,
    watch,
)
from gradspec.text.lm import Budget, Cache, Client, OpenAIModel, Retry, RuleModel, acomplete, complete
from gradspec.text.ops import Prompts, achat, chat, evaluate, fill, join, judge, split
from gradspec.text.ops import sum as total
from gradspec.text.optim import TextualGradientDescent, optimize
from text.lm.server import Server

ROOT = Path(__file__).parents[2]
URL = "http://localhost:9/v1"
DATA = [("a", "b")] * 8


def model(messages: Any) -> str:
    raise AssertionError("the model was asked")


def text(data: Any = "a") -> Variable:
    return Variable(data, requires_grad=True)


def tuned(**wrong: Any) -> Any:
    x = text()
    right = {"program": lambda question: x + question, "data": DATA, "metric": lambda prediction, target: 1.0}
    return optimize(**{**right, "optimizer": TextualGradientDescent([x], model), **wrong})


async def gathered() -> None:
    await gather(3)  # type: ignore[arg-type]


WRONG: dict[str, tuple[Any, str]] = {
    "a list of texts as a prompt": (lambda: chat(model, ["hi"]), "a message is a mapping with the keys .*, not 'hi'"),
    "a number as a prompt": (lambda: chat(model, 3), "messages are a text, a Variable, or a list of messages, not 3"),
    "one message as a prompt": (lambda: chat(model, {"role": "user", "content": "a"}), "messages are a text"),
    "no message": (lambda: chat(model, []), "a chat needs at least one message"),
    "a list in a content": (lambda: chat(model, [{"role": "user", "content": [["a"]]}]), r"\['a'\] is neither"),
    "None as a content": (lambda: chat(model, [{"role": "user", "content": None}]), "None is neither"),
    "a name as a model": (lambda: chat("gpt-4o", "hi"), "a model is a callable .*, not 'gpt-4o'"),
    "a name as an async model": (lambda: asyncio.run(achat("gpt-4o", "hi")), "a model is a callable"),
    "a name to complete": (lambda: complete("gpt-4o", "hi"), "a model is a callable"),
    "a name to acomplete": (lambda: asyncio.run(acomplete("gpt-4o", "hi")), "a model is a callable"),
    "a name as a judge": (lambda: judge("gpt-4o", "task", text()), "a model is a callable"),
    "a list as a task": (lambda: judge(model, ["task"], text()), "task says in words what a prediction is for"),
    "a negative number of votes": (lambda: judge(model, "t", text(), votes=-1), "1 or more, not -1"),
    "True votes": (lambda: judge(model, "t", text(), votes=True), "1 or more, not True"),
    "a scale of one number": (lambda: judge(model, "t", text(), scale=5), "a scale is the worst and the best"),
    "a scale of texts": (lambda: judge(model, "t", text(), scale=("a", "b")), "a scale is the worst and the best"),
    "a rubric of numbers": (lambda: judge(model, "t", text(), rubric=[3]), r"a list of texts, not \[3\]"),
    "a rubric that is a number": (lambda: judge(model, "t", text(), rubric=3), "a list of texts, not 3"),
    "a text as a prediction": (lambda: evaluate(lambda p, t: (1, ""), "a", "b"), "a prediction is a Variable"),
    "a sum of one": (lambda: total(text()), r"a list of texts or numbers; write \[Variable"),
    "a join of a text": (lambda: join("abc"), r"write \['abc'\]"),
    "a join by a number": (lambda: join([text()], 3), "separator is a text, not 3"),
    "a split of a plain text": (lambda: split("a b"), r"what is split is a Variable; write Variable\('a b'\)"),
    "a split at nothing": (lambda: split(text(), ""), "separator is a text that is not empty"),
    "a list as a template": (lambda: fill(["{a}"], a="b"), r"a template is a text or a Variable, not \["),
    "a negative k": (lambda: concurrency(-1).__enter__(), "a positive number of calls, not -1"),
    "True calls at once": (lambda: concurrency(True).__enter__(), "a positive number of calls, not True"),
    "a negative k of a pass": (lambda: (text() + "b").backward(max_concurrency=-1), "not -1"),
    "backward from a number": (lambda: backward(3), "variables is a Variable or a list of them, not 3"),
    "grad of nothing": (lambda: grad(text() + "b", None), "inputs is a Variable or a list of them, not None"),
    "the edge of a text": (lambda: get_gradient_edge("a"), "only a Variable has a gradient edge, not 'a'"),
    "gather of a number": (lambda: asyncio.run(gathered()), "gather takes programs that can be awaited, .*, not 3"),
    "a call for later without a function": (lambda: defer("a"), "defer takes a function and its arguments, not 'a'"),
    "a picture of a text": (lambda: mermaid("a"), "only a Variable has a graph, not 'a'"),
    "a tree of a text": (lambda: tree("a"), "only a Variable has a graph, not 'a'"),
    "a negative width": (lambda: tree(text(), width=-1), "width counts characters, 1 or more"),
    "prices that are a number": (lambda: tree(text(), prices=3), "prices map the name of a model to its prices"),
    "progress of a text": (lambda: progress("a").__enter__(), "progress takes the Variables .*, not 'a'"),
    "a mode in words": (lambda: set_grad_enabled("yes"), "mode is True or False, not 'yes'"),
    "a sink that is None": (lambda: watch(None).__enter__(), "a sink is a callable"),
    "a logger that is a number": (lambda: to_logger(3), "a logger is a logging.Logger or its name, not 3"),
    "events to a folder": (lambda: JsonLines("/"), "a file in a folder that exists, not to '/'"),
    "events to no folder": (lambda: JsonLines("/no/where.jsonl"), "a file in a folder that exists"),
    "a client of a name": (lambda: Client("gpt-4o"), "a model is a callable"),
    "optimize within a number": (lambda: tuned(budget=5), r"budget is such as Budget\(calls=100\), not 5"),
    "a path as a cache": (lambda: Client(model, name="m", cache="a.db"), r"cache is such as Cache\(.*; not 'a.db'"),
    "a number as a budget": (
        lambda: Client(model, budget=10),
        r"budget is such as Budget\(calls=100\), or None; not 10",
    ),
    "a number as retries": (lambda: Client(model, retry=3), r"retry is such as Retry\(attempts=3\)"),
    "a number as a rate": (lambda: Client(model, rate=3), "rate is such as RateLimit"),
    "a text as options": (lambda: Client(model, options="a"), "options is such as"),
    "attempts in words": (lambda: Retry(attempts="3"), "at least 1, not '3'"),
    "a cache in no folder": (lambda: Cache("/no/where.db"), "cannot be opened as a cache"),
    "a folder as a cache": (lambda: Cache("/"), "cannot be opened as a cache"),
    "a list as a name": (lambda: OpenAIModel(["a"], base_url=URL), "model is the server's name of a model"),
    "an empty name": (lambda: OpenAIModel("", base_url=URL), "model is the server's name of a model"),
    "a number as an address": (lambda: OpenAIModel("a", base_url=3), "base_url is a text, .*, not 3"),
    "a timeout in words": (lambda: OpenAIModel("a", base_url=URL, timeout="1"), "seconds above 0, not '1'"),
    "a reply of no bytes": (lambda: OpenAIModel("a", base_url=URL, max_reply_bytes=-1), "1 or more, not -1"),
    "a list of rules": (lambda: RuleModel(["a"]), "rules map a regular expression to an answer"),
    "a broken rule": (lambda: RuleModel({"(": "a"}), r"the rule '\(' is not a regular expression"),
    "a rule that answers with a number": (lambda: RuleModel({"a": 3}), "the answer of a rule is a text or a function"),
    "a rule without its group": (lambda: RuleModel({"a": r"\3"}), r"the answer '.*3' of the rule 'a': invalid group"),
    "a path that keeps a budget": (lambda: Budget(calls=1, kept="a.db"), r"kept is such as Cache\(.*; not 'a.db'"),
    "a number as a key": (lambda: OpenAIModel("a", base_url=URL, api_key=5), "api_key is a text, not .* type int"),
    "a key with its line end": (lambda: OpenAIModel("a", api_key="sk-ab\n"), "api_key holds a line end .*: strip"),
    "a list of headers": (lambda: OpenAIModel("a", base_url=URL, headers=["a"]), "headers map a name to a text"),
    "a header that is a number": (lambda: OpenAIModel("a", base_url=URL, headers={"a": 1}), "that of 'a' is .* int"),
    "messages as an option": (
        lambda: Client(model, options={"messages": 1}),
        "those of the model, .*'messages' is none",
    ),
    "a number as an option": (lambda: Client(model, options={1: 2}), "those of the model, .*; 1 is none"),
    "prompts in a dict": (lambda: chat(model, "a", prompts={"limit": 3}), "prompts are such as replace"),
    "prompts in a dict for a step": (
        lambda: TextualGradientDescent([text()], model, prompts={}),
        "prompts are such as",
    ),
    "a number as a prompt of ours": (lambda: Prompts(update=3), "the prompt `update` is a text, not 3"),
    "None in a template": (lambda: fill("{a}", a=None), r"the place \{a\} of a template takes a text or a number"),
    "a metric that returns None": (lambda: tuned(metric=lambda p, t: None), "a metric returns a number, .*not None"),
    "a program that loses the prompt": (lambda: tuned(program=lambda q: Variable("a")), "an f-string and `.data` lose"),
    "a number as parameters": (lambda: TextualGradientDescent(3, model), "params is a list of Variables, not 3"),
    "an optimizer of a name": (lambda: TextualGradientDescent([text()], "gpt-4o"), "a model is a callable"),
    "constraints in numbers": (lambda: TextualGradientDescent([text()], model, constraints=[3]), "a list of texts"),
    "no optimizer": (lambda: tuned(optimizer=None), r"the optimizer is such as TextualGradientDescent.*, not None"),
    "a program in words": (lambda: tuned(program="p"), "program is a callable, not 'p'"),
    "a metric in words": (lambda: tuned(metric="m"), "metric is a callable, not 'm'"),
    "a number as success": (lambda: tuned(success=0.5), "success is a callable, not 0.5"),
    "a number as data": (lambda: tuned(data=3), "data is a list of examples"),
    "one part": (lambda: tuned(parts=0.5), "1 in sum; not 0.5"),
    "parts in words": (lambda: tuned(parts="abc"), "1 in sum; not 'abc'"),
    "a checkpoint in no folder": (lambda: tuned(checkpoint="/no/where.json"), "make the folder first"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_is_one_line_that_says_what_was_given(what) -> None:
    call, says = WRONG[what]
    with pytest.raises((TypeError, ValueError), match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_key_of_the_environment_with_its_line_end_is_refused_before_a_call(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ab\n")
    with pytest.raises(ValueError, match=r"^OPENAI_API_KEY holds a line end .*: strip"):
        OpenAIModel("a")


def example(*arguments: str) -> list[str]:
    """Return what the example writes on stderr, once it has failed."""
    command = [sys.executable, "docs/examples/optimise_prompt.py", "--seeds", "1", *arguments]
    known = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        command, cwd=ROOT, env={**known, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    return done.stderr.splitlines()


def test_the_example_says_in_a_line_what_is_wrong_with_its_server() -> None:
    assert example("--model", "m", "--base-url", "nonsense")[-1].startswith("Error: base_url is an http or https")
    assert example("--model", "m")[-1].startswith("Error: OpenAI needs a key")
    with Server(faults=[401] * 100) as server:
        [line] = example("--model", "m", "--base-url", server.url)
    assert "answered with status 401: scripted 401" in line
