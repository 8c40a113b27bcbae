"""What a call of a graph cost stands on its node, whoever made it and in which thread."""

from __future__ import annotations

import asyncio

import pytest

from gradspec.text import Function, Variable, concurrency, mermaid, tree
from gradspec.text._costs import cost_of
from gradspec.text.lm import Cache, Client, Completion, Retry, Usage, complete
from gradspec.text.ops import achat, chat, judge
from gradspec.text.ops import sum as total
from gradspec.text.textgrad import TextLoss
from gradspec.text.textgrad import Variable as View
from gradspec.text.textgrad.autograd import LLMCall
from gradspec.text.textgrad.engine import ModelEngine

PRICES = {"m": (1.0, 2.0)}


def model(messages):
    text = "Too long. <score>0</score>" if "<score>" in messages[-1].content else "ok"
    return Completion(text=text, usage=Usage(prompt_tokens=100, completion_tokens=10))


def client(**settings):
    return Client(model, name="m", **settings)


def leaf(text="a"):
    return Variable(text, role="prompt", requires_grad=True)


def counted(cost):
    return cost.calls, cost.input_tokens, cost.output_tokens


def costs(variable, prices=None):
    node = variable.grad_fn
    return counted(node.forward_cost(prices)), counted(node.backward_cost(prices))


@pytest.mark.parametrize("limit", [1, 8])
def test_each_node_has_its_own_calls_in_both_directions(limit):
    with concurrency(limit):
        answers = [chat(client(), [{"role": "user", "content": [leaf(), leaf("b")]}]) for _ in range(3)]
        score, _ = judge(client(), "task", answers[0], votes=2)
        loss = total([*answers[1:]])
    loss.backward(Variable("shorter"), max_concurrency=limit)
    score.backward(max_concurrency=limit)
    assert [costs(answer) for answer in answers] == [((1, 100, 10), (2, 200, 20))] * 3
    assert costs(score) == ((2, 200, 20), (0, 0, 0))
    assert costs(loss) == ((0, 0, 0), (0, 0, 0))


def test_on_an_event_loop_and_through_async_models_too():
    async def slow(messages):
        await asyncio.sleep(0)
        return model(messages)

    async def main():
        answer = await achat(Client(slow, name="m"), leaf())
        await answer.backward_async(Variable("g"), max_concurrency=4)
        return answer

    assert costs(asyncio.run(main())) == ((1, 100, 10), (1, 100, 10))


def test_retries_and_failures_are_calls_and_a_cached_reply_is_none():
    fails = [TimeoutError()]

    def flaky(messages):
        if fails:
            raise fails.pop()
        return model(messages)

    mine = Client(flaky, name="m", cache=Cache(":memory:"), retry=Retry(first_delay=0.0))
    first, again = chat(mine, leaf()), chat(mine, leaf())
    assert (costs(first)[0], costs(again)[0]) == ((2, 100, 10), (0, 0, 0))


class Own(Function):
    """What a user writes: it asks in forward and in backward by itself."""

    io_bound = True

    @staticmethod
    def forward(ctx, x):
        return Variable(complete(model, x.data).text)

    @staticmethod
    def backward(ctx, grad_out):
        complete(model, "one")
        return Variable(complete(model, "two").text)


@pytest.mark.parametrize("limit", [1, 2])
def test_a_function_of_the_users_and_one_inside_of_another(limit):
    outer = Own.apply(Own.apply(leaf()))
    complete(model, "for nobody")
    outer.backward(Variable("g"), max_concurrency=limit)
    complete(model, "for nobody")
    assert costs(outer) == ((1, 100, 10), (2, 200, 20))


def test_the_pictures_show_them_with_money_and_name_no_cost_where_there_is_none():
    answer = chat(client(), leaf())
    answer.backward(Variable("g"))
    first, second = tree(answer).splitlines()
    assert first == "ChatCompletionBackward: answer; asked 1 call, 100 + 10 tokens; back 1 call, 100 + 10 tokens"
    assert "tokens" not in second
    assert "asked 1 call, 100 + 10 tokens, 0.000120 in money" in tree(answer, prices=PRICES)
    assert "asked 1 call, 100 + 10 tokens;" in tree(answer, prices={"another": (1.0, 1.0)})
    both = {("forward", name): [1, 10, 1, 0.0] for name in ("m", "other")}
    assert cost_of(both, "forward", PRICES).money is None
    assert "0.000120 in money" in mermaid(answer, prices=PRICES)
    assert answer.grad_fn.forward_cost(PRICES).money == pytest.approx(100e-6 + 20e-6)
    assert answer.grad_fn.forward_cost().seconds > 0
    assert "call" not in tree(leaf() + "b")


def test_under_textgrads_names_too():
    loss = TextLoss("?", client())(View("x", role_description="text"))
    loss.backward(client())
    assert costs(loss.plain) == ((1, 100, 10), (1, 100, 10))
    engine = ModelEngine(client(), system_prompt="Be brief.")
    assert costs(TextLoss(View("?", role_description="q"), engine)(View("x", role_description="text")).plain)[0] == (
        1,
        100,
        10,
    )
    assert costs(LLMCall(engine)(View("x", role_description="text")).plain)[0] == (1, 100, 10)
