"""The operations: what they compute, where feedback goes, which calls are made, and what overlaps."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from gradspec.text import Variable, concurrency
from gradspec.text.lm import Client, SchemaError
from gradspec.text.ops import (
    PROMPTS,
    chat,
    evaluate,
    exact_match,
    fill,
    join,
    judge,
    split,
)
from gradspec.text.ops import sum as total


def leaf(data: Any, role: str = "") -> Variable:
    return Variable(data, role=role, requires_grad=True)


class Recorder:
    """A model that notes what it is asked and answers by a function, once `awaited` calls are in flight."""

    def __init__(self, answer: Any = lambda messages: f"answer {messages[-1].content}") -> None:
        self.answer, self.asked = answer, []
        self.awaited = threading.Barrier(1)

    def __call__(self, messages, **options):
        self.asked.append((messages, options))
        self.awaited.wait(timeout=20)
        return self.answer(messages)


def test_join_and_sum() -> None:
    x, y = leaf("a", "first"), leaf("b", "second")
    joined = join([x, "-", y], ", ")
    assert (joined.data, joined.role) == ("a, -, b", "first and second")
    joined.backward(Variable("g"))
    assert (x.grad.data, y.grad.data) == ("g", "g")
    n, m = leaf(2), leaf(3)
    (total([n, m, n])).backward()
    assert (n.grad.data, m.grad.data, total([n, m]).data) == (2, 1, 5)
    with pytest.raises(TypeError, match="only texts or only numbers"):
        total([x, n])


def test_split_says_which_part_was_meant() -> None:
    x = leaf("a b c", "list")
    parts = split(x)
    assert [(part.data, part.role) for part in parts] == [(p, f"part {i} of list") for i, p in enumerate("abc", 1)]
    total([parts[0], parts[2]]).backward(Variable("wrong"))
    assert x.grad.data == "Parts 1 and 3 of 3: wrong"
    assert [part.data for part in split(leaf("a,b,c"), ",", 1)] == ["a", "b,c"]
    with pytest.raises(TypeError, match="only a text can be split"):
        split(leaf(["a"]))


@pytest.mark.parametrize("data", ["{y}", "{x}", "{", "}{", "{0}", "{{x}}", "%s", "\\1"])
def test_braces_in_data_survive_a_template(data) -> None:
    filled = fill('{"key": {x}} {y} {z} {{x}}', x=Variable(data), y=2)
    assert filled.data == f'{{"key": {data}}} 2 {{z}} {{{data}}}'


def test_feedback_reaches_the_template_and_its_values() -> None:
    template, x = leaf("Q: {x}", "template"), leaf("why?", "question")
    fill(
        template,
        x=x,
    ).backward(Variable("g"))
    assert (template.grad.data, x.grad.data) == ("g", "g")
    assert fill("plain").data == "plain"
    with pytest.raises(ValueError, match="the template has no place for z"):
        fill(template, z="a")


def messages(*contents: Any) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in zip(("system", "user"), contents, strict=False)]


def test_a_chat_asks_for_feedback_once_for_each_variable_that_needs_it() -> None:
    model = Recorder(lambda said: "42" if len(said) == 2 else "be precise")
    system, user, fixed = leaf("Answer.", "system prompt"), leaf("6 x 7?", "question"), Variable("!", role="end")
    answer = chat(model, messages(system, [user, fixed]), temperature=0)
    assert (answer.data, answer.role) == ("42", "answer")
    said, options = model.asked[0]
    assert ([(m.role, m.content) for m in said], options) == (
        [("system", "Answer."), ("user", "6 x 7?!")],
        {"temperature": 0},
    )
    answer.backward(Variable("Say {why}."))
    assert (system.grad.data, user.grad.data, len(model.asked)) == ("be precise", "be precise", 3)
    for (asked, _), variable in zip(model.asked[1:], (system, user), strict=True):
        for piece in (variable.data, variable.role, "Say {why}.", "42", "user: 6 x 7?!"):
            assert piece in asked[0].content
    assert system.grad.parts[0].outputs == ("answer",)


def test_inputs_save_the_calls_of_a_chat() -> None:
    model = Recorder()
    system, user = leaf("s", "system"), leaf("u", "user")
    chat(model, messages(system, user)).backward(Variable("g"), inputs=[system])
    assert (len(model.asked), user.grad) == (2, None)


def test_a_batch_is_one_conversation_a_place_and_overlaps_both_ways() -> None:
    model = Recorder(lambda said: f"<{said[-1].content[-1]}>" if len(said) == 2 else f"re {said[0].content[-400:]}")
    system, users = leaf("s", "system prompt"), leaf(["a", "b", "c"], "question")
    with concurrency(6):
        model.awaited = threading.Barrier(3)
        answers = chat(model, messages(system, users))
        assert answers.data == ["<a>", "<b>", "<c>"]
        model.awaited = threading.Barrier(6)
        answers.backward(Variable(["first", "second", "third"]))
    assert len(model.asked) == 9
    assert len(users.grad.data) == 3
    assert system.grad.data.count("re ") == 3


def test_a_place_of_a_batch_without_feedback_costs_no_call() -> None:
    model = Recorder(lambda said: "x" if len(said) == 2 else "improve")
    system, users = leaf("s", "system prompt"), leaf(["a", "b", "c"], "question")
    answers = chat(model, messages(system, users))
    score, _ = exact_match(answers, ["x", "y", "x"])
    score.backward()
    assert (score.data, len(model.asked)) == (pytest.approx(2 / 3), 3 + 2)
    assert (users.grad.data, system.grad.data) == (["", "improve", ""], "improve")


def test_lists_of_a_batch_have_one_length() -> None:
    with pytest.raises(ValueError, match=r"different lengths: \[2, 3\]"):
        chat(Recorder(), messages(Variable(["a", "b"]), Variable(["a", "b", "c"])))


def test_another_model_and_other_words_for_feedback() -> None:
    forward, back = Recorder(), Recorder(lambda said: said[0].content)
    prompts = replace(PROMPTS, feedback="{value}|{role}|{output}|{feedback}|{conversation}")
    x = leaf("x", "piece")
    chat(forward, messages(x), backward_model=back, prompts=prompts).backward(Variable("g"))
    assert (x.grad.data, len(forward.asked)) == ("x|piece|answer x|g|system: x", 1)


def test_success_prunes_the_branch() -> None:
    model = Recorder(lambda said: "right")
    x = leaf("x", "prompt")
    score, explanation = exact_match(chat(model, messages(x)), " right\n")
    score.backward()
    assert (score.data, explanation.data, x.grad, len(model.asked)) == (1.0, "The prediction is right.", None, 1)


def test_what_is_said_of_the_evaluation_is_added_to_its_explanation() -> None:
    prediction = leaf("5", "answer")
    _, explanation = exact_match(prediction, Variable("4"))
    explanation.backward(Variable("mind the units"))
    assert prediction.grad.data == "The prediction is '5', and '4' is right.\nmind the units"


def test_evaluation_of_a_list() -> None:
    prediction = leaf(["aa", "b"], "answers")
    score, explanation = evaluate(
        lambda p, t: (len(p) / t, f"{p} is too short"), prediction, 2, success=lambda s: s >= 1, reduction=min
    )
    score.backward()
    assert (score.data, explanation.data) == (0.5, ["aa is too short", "b is too short"])
    assert prediction.grad.data == ["", "b is too short"]
    with pytest.raises(ValueError, match="2 predictions cannot be compared with 3 targets"):
        exact_match(prediction, ["a", "b", "c"])


def test_a_judge() -> None:
    model = Recorder(lambda said: "Rather dull.\n<score> .25 </score>")
    x = leaf("story", "story")
    score, explanation = judge(model, "A story is {lively}.", x, "a lively one")
    assert (score.data, explanation.data) == (0.25, "Rather dull.")
    assert all(piece in model.asked[0][0][0].content for piece in ("A story is {lively}.", "story", "a lively one"))
    score.backward()
    assert x.grad.data == "Rather dull."


@pytest.mark.parametrize("answer", ["none", "<score>2</score>", "<score>high</score>"])
def test_a_judge_without_a_score_is_an_error(answer) -> None:
    with pytest.raises(ValueError, match="no <score> from 0 to 1"):
        judge(Recorder(lambda said: answer), "task", Variable("x"))


def test_a_judge_of_a_list_is_asked_for_each_at_once() -> None:
    model = Recorder(lambda said: "<score>1</score>")
    model.awaited = threading.Barrier(3)
    with concurrency(3):
        score, _ = judge(model, "task", Variable(["a", "b", "c"]))
    assert score.data == 1


def test_an_async_model() -> None:
    async def model(said):
        return "re " + said[-1].content[:3]

    x = leaf("abc", "prompt")
    y = chat(model, messages(x))
    y.backward(Variable("g"), retain_graph=True)
    y.backward(Variable("g"), max_concurrency=4)
    assert (y.data, x.grad.data) == ("re abc", "re A l\nre A l")


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize("limit", [1, 4])
def test_structured_output_gives_the_value(limit) -> None:
    replies = {"a": '{"n": 1}', "b": '{"n": 2}'}
    client = Client(lambda said, **_: replies[said[-1].content])
    with concurrency(limit):
        x = leaf("a", "question")
        one = chat(client, x, schema=SCHEMA)
        many = chat(lambda said, **_: replies[said[-1].content], Variable(["a", "b"]), schema=SCHEMA)
        assert (one.value, one.data, one.requires_grad) == ({"n": 1}, '{"n": 1}', True)
        assert many.value == [{"n": 1}, {"n": 2}]
    assert chat(lambda said, **_: "1", x).value is None
    one.data = '{"n": 3}'
    assert one.value is None


def test_a_reply_of_another_schema_is_an_error_and_a_client_asks_again() -> None:
    answers = ["no", '{"n": 7}']
    assert chat(Client(lambda said, **_: answers.pop(0)), leaf("a"), schema=SCHEMA).value == {"n": 7}
    with pytest.raises(SchemaError, match="A Client around the model asks again"):
        chat(lambda said, **_: "no", leaf("a"), schema=SCHEMA)
    calls = []
    with pytest.raises(ValueError, match="leads back to itself"):
        chat(lambda said, **_: calls.append(1), leaf("a"), schema={"$ref": "#"})
    assert calls == []
