"""The loop: what it accepts, when it ends, what it reports, and what it refuses."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from array import array
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from gradspec.text import Variable
from gradspec.text.lm import Client, Completion, Usage
from gradspec.text.ops import chat
from gradspec.text.optim import Score, TextualGradientDescent, optimize
from gradspec.text.optim._examples import minibatch, split
from gradspec.text.optim._interval import student

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
    settings.setdefault("only_shown", False)  # what the test examples show is another test's subject
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


def test_the_checkpoint_of_another_version_is_refused(tmp_path) -> None:
    file = tmp_path / "run.json"
    tuned("n=3", steps=1, checkpoint=file)
    file.write_text(re.sub(r'"version": \d+', '"version": 99', file.read_text(), count=1))
    with pytest.raises(ValueError, match=r"is a checkpoint of version 99; this version reads version \d+"):
        tuned("n=3", steps=2, checkpoint=file)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}'])
def test_what_is_no_checkpoint_is_refused(tmp_path, text) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="is not a checkpoint of an optimization"):
        tuned(steps=1, checkpoint=file)
    assert file.read_text() == text


def test_after_an_error_the_best_text_stays_and_a_note_says_how_far_the_run_was(tmp_path) -> None:
    prompt, runs = Variable("n=0", role="prompt", requires_grad=True), []

    def metric(prediction: str, target: str) -> tuple[float, str]:
        runs.append(prediction)
        if len(runs) > 16:
            raise ConnectionError("the network is down")
        return float(prediction.split()[0][2:]) / 10, "higher"

    writer = TextualGradientDescent([prompt], Writer("n=3", "n=2", "n=5"))
    file = tmp_path / "run.json"
    with pytest.raises(ConnectionError) as caught:
        optimize(lambda question: prompt + " " + question, DATA, metric, writer, steps=3, batch=2, checkpoint=file)
    assert prompt.data == "n=3"
    (note,) = caught.value.__notes__
    assert note.startswith("2 steps were made, validation 0.000 before and 0.300 after: the parameters hold the texts")
    assert f"run it again with the checkpoint {file} to go on" in note


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
        ({"metric": lambda p, t: "good"}, TypeError, "a metric returns a number"),
        ({"metric": lambda p, t: math.nan}, TypeError, "a metric returns a number"),
        ({"metric": lambda p, t: (1, 2, 3)}, TypeError, "a metric returns a number"),
        ({"concurrency": 0}, ValueError, "max_concurrency is a positive number"),
    ],
)
def test_what_makes_no_sense_is_named(wrong, kind, says) -> None:
    with pytest.raises(kind, match=says):
        tuned("n=1", **wrong)


@pytest.mark.parametrize(
    ("prices", "kind", "says"),
    [
        (2.0, TypeError, "prices map the name of a model to its prices"),
        ({"m": 2.0}, TypeError, "the price of 'm' is a pair"),
        ({"m": (1.0, 2.0, 3.0)}, TypeError, "the price of 'm' is a pair"),
        ({"m": ("1", 2.0)}, TypeError, "the price of 'm' is a number, not '1'"),
        ({"m": (1.0, math.nan)}, ValueError, "the price of 'm' is a finite number, 0 or more, not nan"),
        ({"m": (math.inf, 1.0)}, ValueError, "not inf"),
        ({"m": (1.0, -2.0)}, ValueError, "not -2.0"),
    ],
)
def test_prices_are_looked_at_before_the_first_call(prices, kind, says) -> None:
    calls = []
    with pytest.raises(kind, match=says):
        tuned("n=1", metric=lambda prediction, target: calls.append(prediction) or 0.0, prices=prices)
    assert calls == []
    x = Variable("a", requires_grad=True)
    with pytest.raises(kind, match=says):
        (x + "b").grad_fn.forward_cost(prices)


@dataclass
class Answer:
    """A target that JSON cannot say."""

    text: str
    tags: set[str]


class Opaque:
    """A target that says nothing of itself."""


APART = [
    (Answer("a", {"x"}), Answer("b", {"x"})),
    (Answer("a", {"x"}), Answer("a", {"y"})),
    (Fraction(1, 2), Fraction(1, 3)),
    ({"a", "b"}, {"a", "c"}),
    (b"a", b"b"),
    (array("d", range(5000)), array("d", [*range(4000), *range(1000)])),
]


@pytest.mark.parametrize(("one", "other"), APART, ids=lambda thing: type(thing).__name__)
def test_a_checkpoint_tells_targets_apart(tmp_path, one, other) -> None:
    def run(target):
        data, metric = [("q", target)] * 8, lambda prediction, wanted: float(wanted == one)
        return tuned("n=1", "n=2", data=data, metric=metric, steps=1, checkpoint=tmp_path / "run.json")

    run(one)
    with pytest.raises(ValueError, match="the checkpoint of another run"):
        run(other)
    run(deepcopy(one))


def test_the_hash_of_data_is_the_same_in_each_process() -> None:
    program = (
        "from text.test_optimize import APART; from gradspec.text.optim._checkpoint import fingerprint\n"
        "print(fingerprint({}, [('q', target) for pair in APART for target in pair]))"
    )
    paths = os.pathsep.join(sys.path)
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(said[0]) == 65


@pytest.mark.parametrize("target", [Opaque(), len.__call__, {("a", "b"): 1}], ids=["no repr", "address", "keys"])
def test_data_that_a_checkpoint_cannot_know_again_is_refused_before_the_first_call(tmp_path, target) -> None:
    calls = []

    def metric(prediction, wanted):
        return calls.append(wanted) or 0.0

    with pytest.raises(TypeError, match="a checkpoint must know its data again"):
        tuned("n=1", data=[("q", target)] * 8, metric=metric, steps=1, checkpoint=tmp_path / "run.json")
    assert calls == []
    tuned("n=1", data=[("q", target)] * 8, metric=metric, steps=1)


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
    assert "validation: 0.000 (0.000 to 0.561, 3 examples) -> 0.300 (no interval, 3 examples)" in text
    assert "step 2: training 0.300, validation 0.200: no better; dropped" in text
    assert json.loads(found.to_json())["after"] == ["n=3 <b>&"]
    assert "<ins>+ n=3 &lt;b&gt;&amp;</ins>" in page
    assert "<del>- n=0</del>" in page
    assert "<svg" in page
    assert "<script" not in page
    assert "<b>" not in page


@pytest.mark.parametrize(
    ("right", "of", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_right_and_wrong_have_the_interval_of_newcombes_table(right, of, low, high) -> None:
    """Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I, method 3 (Wilson)."""
    score = Score.of([1.0] * right + [0.0] * (of - right))
    assert (round(score.low, 4), round(score.high, 4)) == (low, high)


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (10, 2.228), (30, 2.042), (100, 1.984), (120, 1.980)],
)
def test_the_quantiles_of_students_distribution(freedom, t) -> None:
    assert round(student(freedom), 3) == t


def test_other_scores_have_students_interval() -> None:
    score = Score.of([1.0, 2.0, 3.0, 4.0, 5.0])  # 3 +- 2.7764 * 1.5811 / sqrt(5)
    assert (score.mean, round(score.low, 3), round(score.high, 3)) == (3.0, 1.037, 4.963)


@pytest.mark.parametrize("scores", [[0.3], [0.3] * 3, [7.0, 7.0]])
def test_scores_that_do_not_vary_have_no_interval(scores) -> None:
    score = Score.of(scores)
    assert (score.low, score.high) == (None, None)
    assert "no interval" in str(score)
    assert json.loads(json.dumps(vars(score)))["low"] is None


def test_each_example_is_drawn_once_before_any_is_drawn_again() -> None:
    drawn = [place for step in range(10) for place in minibatch(5, 2, step, seed=3)]
    assert [sorted(drawn[i : i + 5]) for i in range(0, 20, 5)] == [list(range(5))] * 4
    assert drawn[:5] != drawn[5:10]
    assert minibatch(3, 8, 0, seed=0) == minibatch(3, 3, 0, seed=0)


def test_the_parts_are_drawn_by_the_seed_and_do_not_meet() -> None:
    found = [split(DATA, (0.5, 0.25, 0.25), seed) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert sorted([*found[0].training, *found[0].validation, *found[0].test]) == sorted(DATA)
