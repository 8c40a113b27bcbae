"""What a newcomer tries, and what a breaker does: each works, or fails with an error that says what to do."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import pytest

from gradspec.text import Function, Variable, defer, enable_grad, ops
from gradspec.text._graph import _gradients
from gradspec.text.optim import TextualGradientDescent


def leaf(data: Any = "a", role: str = "") -> Variable:
    return Variable(data, role=role, requires_grad=True)


class Echo(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return Variable(x.data)

    @staticmethod
    def backward(ctx, grad_out):
        return grad_out


class Both(Function):
    """Takes a container of two Variables, and says of each what it is."""

    @staticmethod
    def forward(ctx, pair):
        ctx.save_for_backward(pair)
        return Variable("".join(value.data for value in (pair.values() if isinstance(pair, dict) else pair)))

    @staticmethod
    def backward(ctx, grad_out):
        (pair,) = ctx.saved_variables
        ctx.kind = type(pair)
        if isinstance(pair, dict):
            return {key: Variable(f"{grad_out.data} to {value.data}") for key, value in pair.items()}
        return [Variable(f"{grad_out.data} to {value.data}") for value in pair]


class Pair(NamedTuple):
    first: Variable
    second: Variable


class Sequence(list):
    """A list with a name of its own."""


def ordered(a, b):
    return OrderedDict(a=a, b=b)


def defaulted(a, b):
    return defaultdict(list, a=a, b=b)


@pytest.mark.parametrize("make", [Pair, ordered, defaulted, lambda a, b: Sequence([a, b])])
def test_containers_of_other_classes_are_followed_and_saved_too(make) -> None:
    a, b = leaf("a"), leaf("b")
    pair = make(a, b)
    answer = Both.apply(pair)
    node = answer.grad_fn
    answer.backward(Variable("g"))
    assert (a.grad.data, b.grad.data) == ("g to a", "g to b")
    assert node.kind is type(pair)


@pytest.mark.parametrize("make", [Pair, ordered, lambda a, b: Sequence([a, b])])
def test_a_variable_changed_inside_such_a_container_is_noticed(make) -> None:
    a, b = leaf("a"), leaf("b")
    answer = Both.apply(make(a, b))
    b.data = "c"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        answer.backward(Variable("g"))


class WithData(Function):
    @staticmethod
    def forward(ctx, x, data):
        return Variable(x.data)

    @staticmethod
    def backward(ctx, grad_out):
        return grad_out, None


def test_a_set_of_variables_is_refused_and_another_set_is_data() -> None:
    with pytest.raises(TypeError, match="has no order for their gradients; pass a list"):
        WithData.apply(leaf(), {leaf()})
    x = leaf()
    WithData.apply(x, {"stop", "words"}).backward(Variable("g"))
    assert x.grad.data == "g"


@pytest.mark.parametrize("gradient", ["too short", 1, 0.5])
def test_a_gradient_that_is_no_variable_says_what_to_write(gradient) -> None:
    answer = Echo.apply(leaf())
    with pytest.raises(TypeError, match=rf"a gradient is a Variable, not {gradient!r}; write Variable\({gradient!r}\)"):
        answer.backward(gradient)


def test_a_variable_in_an_f_string() -> None:
    assert f"{Variable('a')} {Variable(0.125):.2f} {Variable(2):>3}" == "a 0.12   2"


def test_pythons_own_sum_of_texts_points_to_ours() -> None:
    with pytest.raises(TypeError, match=r"gradspec\.text\.ops\.sum puts several texts together"):
        sum([leaf("a"), leaf("b")])
    assert sum([leaf(1), leaf(2)]).data == 3


@pytest.mark.parametrize("said", ["hello", Variable("hello")])
def test_a_lone_text_is_one_message_of_the_user(said) -> None:
    assert ops.chat(lambda messages: f"{messages[0].role}: {messages[0].content}", said).data == "user: hello"


@pytest.mark.parametrize("said", [{"role": "user", "text": "hello"}, "hello", {"content": "hello"}])
def test_a_wrong_message_is_named(said) -> None:
    with pytest.raises(TypeError, match="a message is a mapping with the keys role and content, not "):
        ops.chat(lambda messages: "", [said])


def test_a_scorer_of_another_form_is_named() -> None:
    with pytest.raises(TypeError, match="a scorer returns a number and a text that explains it, not 1"):
        ops.evaluate(lambda prediction, target: 1, Variable("a"), "b")


def test_parameters_are_listed_each_once() -> None:
    prompt = leaf()
    with pytest.raises(TypeError, match=r"params is a list of Variables; write \[Variable"):
        TextualGradientDescent(prompt, lambda messages: "")
    with pytest.raises(ValueError, match="a parameter is given twice"):
        TextualGradientDescent([prompt, prompt], lambda messages: "")


def test_tags_inside_a_new_text_cut_nothing_off() -> None:
    prompt = leaf("old")
    prompt.grad = Variable("explain the tags")
    text = "Write it between <new> and </new>.\nNothing else."
    TextualGradientDescent([prompt], lambda messages: f"<new>\n{text}\n</new>").step()
    assert prompt.data == text


@pytest.mark.parametrize("limit", [1, 4])
@pytest.mark.parametrize(
    "answer",
    [lambda: defer(lambda: (Variable("1"), [Variable("2")])), lambda: (Variable("1"), defer(lambda: [Variable("2")]))],
)
def test_a_call_for_later_may_stand_for_several_gradients(answer, limit) -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx, x, ys):
            return Variable("")

        @staticmethod
        def backward(ctx, grad_out):
            return answer()

    x, y = leaf(), leaf()
    Two.apply(x, [y]).backward(Variable("g"), max_concurrency=limit)
    assert (x.grad.data, y.grad.data) == ("1", "2")


@pytest.mark.parametrize("limit", [1, 4])
def test_a_model_that_runs_out_of_replies_does_not_hang(limit) -> None:
    replies = iter(["one", "two", "three"])
    prompt = leaf()
    answers = [ops.chat(lambda messages: next(replies), prompt) for _ in range(2)]
    loss = ops.sum(answers)
    with pytest.raises((StopIteration, RuntimeError)):
        loss.backward(Variable("g"), max_concurrency=limit)
    assert prompt.grad is None


@pytest.mark.parametrize("limit", [1, 4])
@pytest.mark.parametrize("waits", [False, True])
def test_a_backward_inside_a_backward_at_any_depth(limit, waits) -> None:
    class Inner(Function):
        io_bound = waits

        @staticmethod
        def forward(ctx, x):
            with enable_grad():
                ctx.inner = leaf(x.data)
                ctx.answer = Echo.apply(ctx.inner)
            return Variable(x.data)

        @staticmethod
        def backward(ctx, grad_out):
            ctx.answer.backward(grad_out, max_concurrency=limit)
            return Variable(f"seen: {ctx.inner.grad.data}")

    x = leaf()
    ops.sum([Inner.apply(Inner.apply(x)) for _ in range(3)]).backward(Variable("g"), max_concurrency=limit)
    assert x.grad.data == "\n".join(["seen: seen: g"] * 3)


def test_a_hook_may_run_the_same_graph_again() -> None:
    x = leaf()
    answer = x + "!"
    handle = x.register_hook(lambda grad: handle.remove() or answer.backward(Variable("inner"), retain_graph=True))
    answer.backward(Variable("outer"), retain_graph=True)
    assert x.grad.data == "inner\nouter"


def test_passes_of_several_threads_that_end_at_one_leaf_lose_nothing(monkeypatch) -> None:
    merge = _gradients.merge

    def slow(gradients):
        time.sleep(0.001)  # another thread goes on between reading the old gradient and writing the new one
        return merge(gradients)

    monkeypatch.setattr(_gradients, "merge", slow)
    x = leaf()
    threads = [
        threading.Thread(target=lambda: [Echo.apply(x).backward(Variable("g")) for _ in range(10)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(x.grad.parts) == 40


def test_texts_of_any_size_and_any_characters() -> None:
    strange = "\ud800 {braces} {{}} %s \x00 \U0001f600"
    x = leaf("x" * 10_000_000)
    (x + strange).backward(Variable(strange * 1000))
    assert x.grad.data == strange * 1000
    assert ops.fill("{a} {b}", a="{b}", b=strange).data == f"{{b}} {strange}"


def test_who_awaits_an_answer_of_a_stand_in_that_has_run_out_is_told():
    replies = iter(["one"])

    async def both():
        first, second = (ops.chat(lambda messages: next(replies), question) for question in ("a", "b"))
        assert (await first.ready()).data == "one"
        with pytest.raises(RuntimeError, match="the call raised StopIteration"):
            await asyncio.wait_for(second.ready(), 20)

    asyncio.run(both())
