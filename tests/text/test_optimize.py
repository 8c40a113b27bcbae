"""The loop: what it accepts, when it ends, what it reports, and what it refuses."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from gradspec.text import Variable
from gradspec.text.lm import Client, Completion, Usage
from gradspec.text.ops import chat
from gradspec.text.optim import Score, TextualGradientDescent, optimize
from gradspec.text.optim._examples import minibatch, split

DATA = [(f"q{i}", f"a{i}") for i in range(12)]


class Writer:
    """A model that writes one text after the other."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked = list(texts), []

    def __call__(self, messages, **options):
        self.asked.append(messages[-1].content)
        return f"<new>{self.texts.pop(0)}</new>"


def tuned(*texts: str, metric: Any = None, **settings: Any):
    """Return the report, the prompt, and the model that wrote texts `n=...`; a text's number is its score."""
    prompt = Variable("n=0", role="prompt", requires_grad=True)
    writer = Writer(*texts)
    found = optimize(
        lambda question: prompt + " " + question,
        settings.pop("data", DATA),
        metric or (lambda prediction, target: (float(prediction.split()[0][2:]) / 10, "higher")),
        settings.pop("optimizer", None) or TextualGradientDescent([prompt], writer),
        **settings,
    )
    return found, prompt, writer


def test_only_a_better_text_is_accepted() -> None:
    found, prompt, _ = tuned("n=3", "n=2", "n=3.0", "n=5", steps=4)
    assert [step.accepted for step in found.steps] == [True, False, False, True]
    assert [step.outcome for step in found.steps][1] == "no better; dropped"
    assert (prompt.data, found.before, found.after) == ("n=5", ("n=0",), ("n=5",))
    assert (found.validation_before.mean, found.validation_after.mean) == (0.0, 0.5)
    assert (found.test_before.mean, found.test_after.mean) == (0.0, 0.5)
    assert found.ended == "4 steps are made"


def test_the_next_step_begins_at_the_best_text() -> None:
    _, _, writer = tuned("n=3", "n=2", "n=4", steps=3)
    assert ["<text>\nn=3\n</text>" in asked for asked in writer.asked] == [False, True, True]


def test_patience() -> None:
    found, prompt, writer = tuned("n=3", "n=2", "n=1", "n=9", steps=9, patience=2)
    assert (found.ended, prompt.data, writer.texts) == ("no better text in 2 steps", "n=3", ["n=9"])


def test_no_feedback_costs_no_call_and_is_no_step_forward() -> None:
    found, _, writer = tuned("n=5", success=lambda score: True, steps=2)
    assert (writer.asked, [step.outcome for step in found.steps]) == ([], ["no new text"] * 2)


def asking(k: int):
    """Return the report of a program that asks a model, with up to k calls at once."""
    written = [0]

    def model(messages, **options):
        said = messages[-1].content
        if "Rewrite the text" in said:
            written[0] += 1
            text = f"<new>Prompt {written[0]}, {said.count('1') % 7}</new>"
            return Completion(text=text, usage=Usage(prompt_tokens=10, completion_tokens=2))
        return Completion(text=f"{len(said)}", usage=Usage(prompt_tokens=3, completion_tokens=1))

    client = Client(model, name="m")
    prompt = Variable("Answer.", role="prompt", requires_grad=True)
    return optimize(
        lambda question: chat(client, [{"role": "user", "content": [prompt, question]}]),
        DATA,
        lambda prediction, target: (int(prediction) / 100, f"{prediction}?"),
        TextualGradientDescent([prompt], client),
        steps=3,
        concurrency=k,
        prices={"m": (1e6, 2e6)},
    )


def test_the_report_is_the_same_for_any_concurrency() -> None:
    assert asking(1) == asking(8)


def test_calls_tokens_and_money() -> None:
    found = asking(1)
    replies, said, replied = found.models["m"]
    # Of 12 examples 6 train, 3 validate, 3 test. First 3; a step: 4 forward, 4 back, 1 text, 3 to validate; 6 at last.
    assert replies == found.calls == 3 + 3 * (4 + 4 + 1 + 3) + 6
    assert found.cost == said + 2 * replied
    assert found.tokens == said + replied


def test_a_score_alone_is_feedback_enough() -> None:
    found, _, writer = tuned("n=3", metric=lambda p, t: float(p.split()[0][2:]) / 10, steps=1)
    assert "The score is 0.0. Wanted was 'a" in writer.asked[0]
    assert found.validation_after.mean == 0.3


def test_a_checkpoint_is_gone_on_from(tmp_path) -> None:
    file = tmp_path / "run.json"
    tuned("n=3", "n=2", steps=2, checkpoint=file)
    found, prompt, writer = tuned("n=4", steps=3, checkpoint=file)
    assert (len(found.steps), prompt.data, len(writer.asked)) == (3, "n=4", 1)
    assert [step.accepted for step in found.steps] == [True, False, True]
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_an_error_leaves_the_best_text_and_the_checkpoint(tmp_path) -> None:
    file = tmp_path / "run.json"
    with pytest.raises(ValueError, match="could not convert"):
        tuned("n=3", "n=bad", steps=2, checkpoint=file)
    state = json.loads(file.read_text())
    assert (state["best"], len(state["steps"])) == (["n=3"], 1)
    found, prompt, _ = tuned("n=4", steps=2, checkpoint=file)
    assert (prompt.data, len(found.steps)) == ("n=4", 2)


@pytest.mark.parametrize("other", [{"seed": 1}, {"batch": 2}, {"data": DATA[:11]}])
def test_the_checkpoint_of_another_run_is_refused(tmp_path, other) -> None:
    file = tmp_path / "run.json"
    tuned("n=3", steps=1, checkpoint=file)
    with pytest.raises(ValueError, match="the checkpoint of another run"):
        tuned("n=4", steps=2, checkpoint=file, **other)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}'])
def test_what_is_no_checkpoint_is_refused(tmp_path, text) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="is no checkpoint of an optimization"):
        tuned(steps=1, checkpoint=file)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("wrong", "kind", "says"),
    [
        ({"steps": -1}, ValueError, "steps is a whole number, 0 or more"),
        ({"batch": 0}, ValueError, "batch is a whole number, 1 or more"),
        ({"patience": 1.5}, ValueError, "patience is a whole number, 1 or more"),
        ({"parts": (1, 1, 1)}, ValueError, "1 in sum"),
        ({"parts": (math.nan, 0, 1)}, ValueError, "1 in sum"),
        ({"parts": (1, 0, 0)}, ValueError, "no example for validation"),
        ({"data": []}, ValueError, "no example for training"),
        ({"data": {"train": []}}, ValueError, "data in parts has the parts"),
        ({"data": ["abc"]}, TypeError, "number 0 is 'abc'"),
        ({"metric": lambda p, t: "good"}, TypeError, "a scorer returns a number"),
        ({"metric": lambda p, t: math.nan}, TypeError, "a scorer returns a number"),
        ({"metric": lambda p, t: (1, 2, 3)}, TypeError, "a metric returns a score"),
        ({"concurrency": 0}, ValueError, "max_concurrency is a positive number"),
    ],
)
def test_what_makes_no_sense_is_named(wrong, kind, says) -> None:
    with pytest.raises(kind, match=says):
        tuned("n=1", **wrong)


def test_a_program_that_ignores_the_parameters_is_named() -> None:
    prompt = Variable("a", requires_grad=True)
    writer = TextualGradientDescent([prompt], Writer())
    with pytest.raises(TypeError, match="does not depend on a parameter"):
        optimize(lambda question: Variable(question), DATA, lambda p, t: 0, writer)
    with pytest.raises(TypeError, match="it must return a Variable"):
        optimize(lambda question: question, DATA, lambda p, t: 0, writer)  # type: ignore[arg-type, return-value]


def test_targets_may_be_lists() -> None:
    found, _, _ = tuned("n=1", data=[("q", ["a", "b"])] * 8, metric=lambda p, t: len(t) / 2, steps=1)
    assert found.validation_before.mean == 1.0


def test_the_report_in_three_forms() -> None:
    found, _, _ = tuned("n=3 <b>&", "n=2", steps=2)
    text, page = str(found), found.page()
    assert "validation: 0.000 (0.000 to 0.000, 3 examples) -> 0.300 (0.300 to 0.300, 3 examples)" in text
    assert "step 2: training 0.300, validation 0.200: no better; dropped" in text
    assert json.loads(found.to_json())["after"] == ["n=3 <b>&"]
    assert "<ins>+ n=3 &lt;b&gt;&amp;</ins>" in page
    assert "<del>- n=0</del>" in page
    assert "<svg" in page
    assert "<script" not in page
    assert "<b>" not in page


def test_a_score_has_an_interval() -> None:
    score = Score.of([0.0, 1.0] * 8)
    assert score.mean == 0.5
    assert 0.2 < score.low < 0.35 < 0.65 < score.high < 0.8
    assert Score.of([0.0, 1.0] * 8) == score


def test_each_example_is_drawn_once_before_any_is_drawn_again() -> None:
    drawn = [place for step in range(10) for place in minibatch(5, 2, step, seed=3)]
    assert [sorted(drawn[i : i + 5]) for i in range(0, 20, 5)] == [list(range(5))] * 4
    assert drawn[:5] != drawn[5:10]
    assert minibatch(3, 8, 0, seed=0) == minibatch(3, 3, 0, seed=0)


def test_the_parts_are_drawn_by_the_seed_and_do_not_meet() -> None:
    found = [split(DATA, (0.5, 0.25, 0.25), seed) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert sorted([*found[0].training, *found[0].validation, *found[0].test]) == sorted(DATA)
