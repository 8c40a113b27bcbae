"""Textual gradient descent: what the model sees, what it may answer, and all or nothing."""

from __future__ import annotations

import json
import threading

import pytest

from gradspec.text import Variable, concurrency
from gradspec.text.ops import fill
from gradspec.text.optim import TextualGradientDescent


def param(text: str = "old", feedback: str | None = "improve", role: str = "prompt") -> Variable:
    variable = Variable(text, role=role, requires_grad=True)
    if feedback is not None:
        (variable + "").backward(Variable(feedback))
    return variable


class Model:
    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), []

    def __call__(self, messages):
        self.asked.append([message.content for message in messages])
        return self.answers.pop(0)


def test_a_step_rewrites_from_the_whole_text_and_the_whole_feedback() -> None:
    long = "word " * 20_000
    x = param(long, "comment " * 20_000 + "{value}")
    model = Model("Here:\n<new>\nnew {text}\n\n  indented\n</new> done")
    TextualGradientDescent([x], model, constraints=["short", "polite"]).step()
    assert (x.data, x.version) == ("new {text}\n\n  indented", 1)
    (prompt,) = model.asked[0]
    assert long in prompt
    assert "comment " * 20_000 + "{value}" in prompt
    assert "- short\n- polite" in prompt


def test_parameters_without_feedback_cost_nothing() -> None:
    x, y = param(feedback=None), param(feedback="")
    model = Model()
    TextualGradientDescent([x, y], model).step()
    assert (x.data, y.data, model.asked) == ("old", "old", [])


def test_one_repair() -> None:
    x = param()
    model = Model("no tags", "<new>better</new>")
    TextualGradientDescent([x], model).step()
    assert x.data == "better"
    assert len(model.asked[1]) == 3
    assert "no tags" in model.asked[1][2]


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        (("<new>Short: {question} {other}</new>",), "Short: {question} {other}"),
        (("<new>Short.</new>", "<new>Short: {question}</new>"), "Short: {question}"),
        (("<new>Short.</new>", "<new>Shorter.</new>"), "Answer: {question} {free}"),
    ],
)
def test_a_template_keeps_the_places_that_a_program_has_filled(answers: tuple[str, ...], text: str) -> None:
    template = Variable("Answer: {question} {free}", role="template", requires_grad=True)
    fill(template, question=Variable("1 + 1?")).backward(Variable("Be short."))
    model = Model(*answers)
    TextualGradientDescent([template], model).step()
    assert (template.data, model.answers) == (text, [])
    if len(answers) > 1:
        assert "leaves out {question}" in model.asked[1][2]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: TextualGradientDescent([x + "!"], Model()), "a Variable that you make, and not what is computed"),
        (lambda x: TextualGradientDescent([x], Model), "a model is an instance: write Model"),
        (lambda x: TextualGradientDescent([x], Model(), prompts={"update": "x"}), "prompts are such as"),
    ],
)
def test_what_cannot_be_optimised_is_refused(make, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make(param())


def test_after_an_error_no_parameter_has_changed() -> None:
    x, y = param("x"), param("y")
    model = Model("<new>better</new>", "none", "again none")
    optimizer = TextualGradientDescent([x, y], model, momentum=2)
    before = optimizer.state_dict()
    with pytest.raises(ValueError, match="twice wrote no text between <new> and </new>; its last answer: 'again none'"):
        optimizer.step()
    assert optimizer.state_dict() == before
    assert x.grad is not None


def test_parameters_overlap() -> None:
    barrier = threading.Barrier(4)

    def model(messages):
        barrier.wait(timeout=20)
        return "<new>better</new>"

    params = [param(str(i)) for i in range(4)]
    with concurrency(4):
        TextualGradientDescent(params, model).step()
    assert [p.data for p in params] == ["better"] * 4


def test_momentum_shows_the_last_texts_and_comments_oldest_first() -> None:
    x = param("text 0", "comment 0")
    model = Model(*[f"<new>text {i}</new>" for i in range(1, 5)])
    optimizer = TextualGradientDescent([x], model, momentum=2)
    for i in range(1, 5):
        optimizer.step()
        optimizer.zero_grad()
        assert x.grad is None
        (x + "").backward(Variable(f"comment {i}"))
    assert "Earlier texts" not in model.asked[0][0]
    last = model.asked[3][0]
    places = [last.index(text) for text in ("text 1", "comment 1", "text 2", "comment 2")]
    assert places == sorted(places)
    assert "text 0" not in last


def test_the_state_is_json_and_comes_back() -> None:
    x = param("a")
    optimizer = TextualGradientDescent([x], Model("<new>b</new>"), momentum=1, constraints=["c"])
    optimizer.step()
    state = json.loads(json.dumps(optimizer.state_dict()))
    y = param("other")
    other = TextualGradientDescent([y], Model())
    other.load_state_dict(state)
    assert (y.data, other.state_dict()) == ("b", optimizer.state_dict())
    with pytest.raises(ValueError, match="the state has 1 parameters, the optimizer 2"):
        TextualGradientDescent([param(), param()], Model()).load_state_dict(state)
    with pytest.raises(ValueError, match="the state has version 2"):
        other.load_state_dict(state | {"version": 2})


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="at least one parameter"):
        TextualGradientDescent([], Model())
    for wrong in (Variable("a"), Variable(1, requires_grad=True), "text"):
        with pytest.raises(TypeError, match="a parameter is a Variable that holds a text and requires grad"):
            TextualGradientDescent([wrong], Model())
    with pytest.raises(TypeError, match=r"constraints is a list of texts; write \['short'\]"):
        TextualGradientDescent([param()], Model(), constraints="short")
    with pytest.raises(ValueError, match="momentum counts earlier texts"):
        TextualGradientDescent([param()], Model(), momentum=-1)
