"""A plan asks no model, changes nothing, and bounds what the run then asks; a budget that is too small is refused."""

from __future__ import annotations

import random

import pytest

from gradspec.text import Variable, ops
from gradspec.text.lm import Budget, BudgetError, Cache, Client, Completion, Usage
from gradspec.text.ops import chat
from gradspec.text.optim import TextualGradientDescent, optimize

DATA = [(f"q{i}", f"a{i}") for i in range(12)]
LIMIT = {"max_tokens": 40}
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


class Worst:
    """A model that is as dear as it may be: its replies have 40 bytes of a token each, and new texts need a repair."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tokens = 0

    def __call__(self, messages, *, schema=None, **options):
        self.asked.append(messages[-1].content)
        said = sum(len(message.content.encode()) for message in messages)
        text = f"{len(self.asked):040}"
        if len(messages) == 3 and schema is None:  # the repair of a new text
            text = f"<new>{len(self.asked):029}</new>"
        self.tokens += said + 40
        return Completion(text=text, usage=Usage(prompt_tokens=said, completion_tokens=40))


class Program:
    """A prompt, a program of two calls with it, a metric, and how a text is written anew."""

    def __init__(self, *, budget=None, cache=None, schema=None, options=LIMIT, metric=None, momentum=0) -> None:
        self.model = Worst()
        self.client = Client(self.model, name="worst", budget=budget, cache=cache, options=options)
        self.prompt = Variable("Answer.", role="prompt", requires_grad=True)
        self.optimizer = TextualGradientDescent([self.prompt], self.client, momentum=momentum)
        self.schema = {} if schema is None else {"schema": schema}
        self.metric = metric or (lambda prediction, target: (0.0, f"{prediction} is wrong"))

    def __call__(self, question):
        first = chat(self.client, [{"role": "user", "content": [self.prompt, " ", question]}])
        return chat(self.client, [{"role": "user", "content": ["Shorter: ", first]}], **self.schema)

    def optimized(self, **settings):
        settings = {"steps": 3, "batch": 2, "data": DATA} | settings
        return optimize(self, settings.pop("data"), self.metric, self.optimizer, **settings)


def test_each_new_text_is_repaired_once_whatever_was_asked_before():
    program = Program()
    one = lambda question: chat(program.client, [{"role": "user", "content": [program.prompt, question]}])  # noqa: E731
    plan = optimize(one, DATA, program.metric, program.optimizer, batch=2, steps=1, dry_run=True)
    assert [load.calls for load in plan.loads] == [3, 2 + 2 + 2, 3, 6]


def test_a_plan_asks_nothing_and_changes_nothing(tmp_path):
    cache, budget = Cache(tmp_path / "replies.sqlite3"), Budget(calls=1000, tokens=10**6)
    program = Program(cache=cache, budget=budget, momentum=2)
    program.prompt.grad = Variable("before")
    state = program.optimizer.state_dict()
    program.optimized(dry_run=True)
    assert program.model.asked == []
    assert len(cache) == 0
    assert (budget.calls, budget.tokens) == (0, 0)
    assert program.optimizer.state_dict() == state
    assert (program.prompt.data, program.prompt.grad.data) == ("Answer.", "before")


@pytest.mark.parametrize("first", ["Answer.", "Answer at length. " * 20], ids=["short", "long"])
@pytest.mark.parametrize("momentum", [0, 2])
@pytest.mark.parametrize(("steps", "batch", "examples"), [(0, 1, 12), (1, 3, 12), (4, 2, 12), (4, 3, 20)])
def test_the_worst_run_asks_what_the_plan_says(steps, batch, examples, momentum, first):
    program = Program(momentum=momentum)
    program.prompt.data = first
    settings = {"steps": steps, "batch": batch, "data": [(f"q{i}", f"a{i}") for i in range(examples)]}
    plan = program.optimized(dry_run=True, **settings)
    found = program.optimized(**settings)
    untested = plan.loads[-1].calls // 2 if found.before == found.after else 0  # the same texts are tested once
    assert len(program.model.asked) == plan.total.calls - untested
    assert program.model.tokens <= plan.total.tokens
    assert plan.total.tokens == sum(load.tokens for load in plan.loads)
    assert [load.name for load in plan.loads][:1] == ["first texts"]
    assert len(plan.loads) == 2 + 2 * steps


def test_a_text_that_grows_is_bounded():
    def better(prediction, target):
        better.score += 0.01
        return better.score, f"{prediction} is wrong"

    better.score = 0.0
    program = Program(metric=better, momentum=3)
    plan = program.optimized(dry_run=True, steps=5)
    better.score = 0.0
    found = program.optimized(steps=5)
    assert all(step.accepted for step in found.steps)
    assert plan.total.tokens / 8 < program.model.tokens <= plan.total.tokens
    assert len(program.model.asked) == plan.total.calls


def test_prices_bound_the_money():
    program = Program()
    plan = program.optimized(dry_run=True, prices={"worst": (1.0, 1.0)})
    assert plan.total.money == pytest.approx(plan.total.tokens / 1e6)
    assert program.optimized(dry_run=True, prices={"other": (1.0, 1.0)}).total.money is None
    assert "in money" in str(plan)


def test_without_a_limit_of_the_reply_there_is_no_bound_of_tokens():
    plan = Program(options={}).optimized(dry_run=True)
    assert (plan.total.tokens, plan.total.money) == (None, None)
    assert "tokens without a bound" in str(plan)


def test_a_schema_takes_all_its_attempts():
    plain, checked = (Program(schema=schema).optimized(dry_run=True) for schema in (None, SCHEMA))
    assert checked.loads[0].calls == 3 * 3  # three examples, one call and one of two attempts
    assert plain.loads[0].calls == 3 * 2
    assert checked.loads[0].tokens > plain.loads[0].tokens


def test_what_the_cache_holds_is_not_counted(tmp_path):
    program = Program(cache=Cache(tmp_path / "replies.sqlite3"))
    program.optimized(steps=0)
    paid = len(program.model.asked)
    assert paid > 0
    plan = program.optimized(steps=0, dry_run=True)
    assert plan.total.calls == 0
    program.optimized(steps=0)
    assert len(program.model.asked) == paid


def test_a_judge_that_the_metric_asks_itself_is_counted_and_not_asked():
    judge = Worst()
    client = Client(judge, name="judge", options=LIMIT)

    def metric(prediction, target):
        return float(client(f"{prediction} or {target}?").usage is None), "wrong"

    plan = Program(metric=metric).optimized(dry_run=True)
    assert plan.loads[0].calls == 3 * 3
    assert judge.asked == []


def test_a_metric_that_reads_no_stand_in_is_remarked():
    plan = Program(metric=lambda prediction, target: (float(prediction), "wrong")).optimized(dry_run=True)
    assert plan.remarks == ("the metric raised ValueError on a stand-in; what it asks after that is not counted",)


def test_a_program_that_reads_no_stand_in_is_said():
    program = Program()

    def reads(question):
        return Variable(int(program(question).data))

    with pytest.raises(ValueError, match=r"the program cannot be rehearsed: .* it raised ValueError: invalid literal"):
        optimize(reads, DATA, program.metric, program.optimizer, dry_run=True)
    assert program.prompt.data == "Answer."


def least_and_most():
    plan = Program().optimized(dry_run=True)
    return plan.least_calls, plan.comparison.calls


def test_a_budget_below_one_comparison_is_refused_before_a_call_is_paid():
    least, most = least_and_most()
    assert 8 < least < most
    for calls in (8, least - 1):
        budget = Budget(calls=calls)
        program = Program(budget=budget)
        for dry_run in (False, True):
            with pytest.raises(BudgetError, match=rf"has {calls} calls left, .* at least {least} calls; {most} calls"):
                program.optimized(budget=budget, dry_run=dry_run)
        assert program.model.asked == []
        assert budget.calls == 0


def test_the_budget_that_is_said_to_suffice_suffices_for_one_comparison():
    _, most = least_and_most()
    budget = Budget(calls=most)
    program = Program(budget=budget)
    plan = program.optimized(budget=budget, dry_run=True)
    assert (plan.proposals, plan.comparisons) == (1, 1)
    assert "allows for 1 proposal and 1 comparison" in str(plan)
    with pytest.raises(BudgetError, match=f"{most} of {most} calls are made"):
        program.optimized(budget=budget)
    program = Program(budget=(budget := Budget(calls=most)))
    found = program.optimized(steps=1, budget=budget, data={"training": DATA[:6], "validation": DATA[6:9]})
    assert [step.validation is not None for step in found.steps] == [True]


def test_a_budget_of_tokens_that_cannot_hold_the_dearest_call_is_refused():
    budget = Budget(tokens=150)
    program = Program(budget=budget)
    with pytest.raises(BudgetError, match=r"has 150 tokens left, .* takes at least \d+ tokens; \d+ calls and \d+ tok"):
        program.optimized(budget=budget)
    assert program.model.asked == []


def test_a_model_outside_of_the_budget_is_refused():
    program = Program()
    with pytest.raises(ValueError, match="the model 'worst' is asked outside of the budget"):
        program.optimized(budget=Budget(calls=1000))


@pytest.mark.parametrize("seed", range(25))
def test_no_run_of_a_random_program_asks_more_than_its_plan(seed):
    draw = random.Random(seed)
    model = Worst()
    client = Client(model, name="worst", options={"max_tokens": draw.choice([40, 80])})
    prompts = [Variable("Be brief. " * draw.randint(0, 9), role=f"prompt {i}", requires_grad=True) for i in range(2)]
    depth, fans = draw.randint(1, 3), draw.randint(1, 2)

    def program(question):
        said = [question] * fans
        for level in range(depth + len(question) % 2):  # an input decides how much is asked
            said = [
                chat(client, [{"role": "user", "content": [prompts[level % 2], " ", part, f" {place}"]}])
                for place, part in enumerate(said)
            ]
        return ops.sum(said)

    def metric(prediction, target):
        return draw.random(), "" if draw.random() < 0.3 else f"{prediction} is not {target}"

    writer = TextualGradientDescent(prompts, client, momentum=draw.randint(0, 2))
    data = [("q" * draw.randint(1, 9), f"a{i}") for i in range(12)]
    settings = {"steps": draw.randint(1, 4), "batch": draw.randint(1, 3), "success": lambda score: score > 0.7}
    plan = optimize(program, data, metric, writer, dry_run=True, **settings)
    assert model.asked == []
    found = optimize(program, data, metric, writer, **settings)
    assert plan.least_calls <= plan.comparison.calls <= plan.total.calls
    assert 0 < len(model.asked) <= plan.total.calls
    assert model.tokens <= plan.total.tokens
    assert found.calls == len(model.asked)
    if found.steps[0].validation is not None:
        tested = plan.loads[-1].calls // (1 if found.before != found.best else 2)
        assert plan.least_calls <= len(model.asked) - tested


def test_a_template_keeps_its_places_where_it_is_rewritten():
    template = Variable("Hint: {question}", role="template", requires_grad=True)
    client = Client(Worst(), name="worst", options=LIMIT)

    lengths = set()

    def program(question):
        lengths.add(len(template.data))
        return chat(client, [{"role": "user", "content": ops.fill(template, question=question)}])

    writer = TextualGradientDescent([template], client)
    plan = optimize(program, DATA, lambda prediction, target: 0.0, writer, batch=2, steps=2, dry_run=True)
    assert sum(load.calls for load in plan.loads) > 0
    assert max(lengths) == LIMIT["max_tokens"]  # a new text is as long as it may be, and no old one that stayed
    assert template.data == "Hint: {question}"
