"""A prompt is as long as the graph is, and not longer: for each kind of layer, and for what a limit leaves out."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradspec.text import Variable, backward
from gradspec.text.lm import StatusError
from gradspec.text.ops import PROMPTS, Prompts, chat, exact_match, fill, join, split
from gradspec.text.ops import sum as lines
from gradspec.text.ops._bounded import bounded
from gradspec.text.optim import TextualGradientDescent


class Listening:
    """A model that keeps the length of the longest prompt, and always says the same."""

    def __init__(self):
        self.longest = 0

    def __call__(self, messages):
        self.longest = max(self.longest, sum(len(message.content) for message in messages))
        return "<new>one,two</new>" if "Rewrite the text" in messages[-1].content else "one,two"


def halves(x, model, losses):
    one, other = split(x, ",")
    return join([one, other], ",")


def judged_halves(x, model, losses):
    one, other = split(x, ",")
    losses += [exact_match(half, "right")[0] for half in (one, other)]
    return join([other, one], ",")


def diamond(x, model, losses):
    one, _ = split(fill("{one},{two}", one=x, two=x), ",", 1)
    return fill("{one},{two}", one=one, two="two")


def answered(x, model, losses):
    return chat(model, [{"role": "system", "content": x}, {"role": "user", "content": [x, " and ", x]}])


def summed(x, model, losses):
    first, *_ = split(lines([x, x, x]), "\n")
    return first


LAYERS = [halves, judged_halves, diamond, answered, summed]


def longest_prompt(layers, prompts=PROMPTS):
    """Return the characters of the longest prompt on the way back through layers, and of that of the step."""
    model, losses = Listening(), []
    x = Variable("one,two", role="text", requires_grad=True)
    y = chat(model, x, prompts=prompts)
    for layer in layers:
        y = layer(y, model, losses)
    backward([*losses, exact_match(chat(model, y, prompts=prompts), "right")[0]])
    TextualGradientDescent([x], model, prompts=prompts).step()
    return model.longest


def check_linear(layers):
    twelve = longest_prompt((layers * 12)[:12])
    assert twelve <= 12 * longest_prompt(layers[:1])  # 2^12 is more; of 2^64 there would be no memory
    short, middle, long = (longest_prompt(layers * count) for count in (16, 32, 64))
    assert long - middle <= 2.2 * (middle - short) + 1


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_the_longest_prompt_is_linear_in_the_number_of_layers(layer):
    check_linear([layer])


@pytest.mark.parametrize("first", LAYERS, ids=lambda layer: layer.__name__)
@pytest.mark.parametrize("second", LAYERS, ids=lambda layer: layer.__name__)
def test_layers_of_two_kinds_too(first, second):
    check_linear([first, second])


@pytest.mark.parametrize("seed", range(20))
def test_layers_drawn_at_random_too(seed):
    draw = random.Random(seed)
    check_linear([draw.choice(LAYERS) for _ in range(draw.randint(3, 6))])


def test_with_a_limit_a_prompt_does_not_depend_on_how_many_there_are_to_comment():
    def longest(count, prompts):
        model = Listening()
        x = Variable("one", role="text", requires_grad=True)
        answer = chat(model, x, prompts=prompts)
        backward([exact_match(fill("{a} {n}", a=answer, n=number), "right")[0] for number in range(count)])
        TextualGradientDescent([x], model, prompts=prompts).step()
        return model.longest

    bounded_ones = [longest(count, Prompts(limit=300)) for count in (50, 500)]
    assert bounded_ones[1] - bounded_ones[0] <= 50  # where no further comment fits, and the digits of what is left out
    assert longest(500, PROMPTS) > 10 * bounded_ones[1]


def test_a_judged_list_is_bounded_place_by_place():
    asked = []

    def model(messages):
        asked.append(messages[-1].content)
        return "two"

    prompt = Variable("Answer.", role="prompt", requires_grad=True)
    answers = chat(model, [{"role": "user", "content": [prompt, Variable(["a", "b"])]}], prompts=Prompts(limit=10))
    backward([answers, answers], [Variable(["x" * 9, "short"]), Variable(["y" * 9, "brief"])])
    said = [re.search(r"<comment>\n(.*)\n</comment>", prompt, re.DOTALL).group(1) for prompt in asked[2:]]
    left = "[1 of 2 comments is left out: {} characters]"
    assert said == [f"{'x' * 9}\n{left.format(9)}", f"short\n{left.format(5)}"]


@given(st.lists(st.text("ab", max_size=12), max_size=12), st.integers(1, 60))
def test_what_is_left_out_is_counted(comments, limit):
    found = bounded(comments, limit).split("\n")
    said = [comment for comment in comments if comment]
    if found == said or not said:
        assert len("\n".join(found)) <= limit
        return
    count = characters = 0
    if note := re.fullmatch(r"\[(\d+) of (\d+) comments? (?:is|are) left out: (\d+) characters\]", found[-1]):
        found.pop()
        count, characters = int(note[1]), int(note[3])
        assert count > 0
        assert int(note[2]) == len(said)
    if cut := re.fullmatch(r"\[(\d+) of the (\d+) characters above are left out\]", found[-1]):
        assert found[:-1] == [f"{said[0][:limit]} ..."]
        assert (int(cut[1]), int(cut[2])) == (len(said[0]) - limit, len(said[0]))
        found = [said[0]]
    else:
        assert len("\n".join(found)) <= limit
    kept = [re.fullmatch(r"(\w+)(?: \((\d+) times\))?", line) for line in found]
    assert {line[1] for line in kept} <= {*said}
    assert count + sum(int(line[2] or 1) for line in kept) == len(said)
    assert characters + sum(len(line[1]) * int(line[2] or 1) for line in kept) == len("".join(said))


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "100"])
def test_a_limit_that_makes_no_sense_is_refused(limit):
    with pytest.raises(ValueError, match="limit is a number of characters, 1 or more, or None"):
        Prompts(limit=limit)


def test_98_samples_fit_a_context(monkeypatch):
    """Feedback on 98 samples overflowed the context of a model: zou-group/textgrad#179."""
    asked = []

    def small(messages):
        asked.append(messages[-1].content)
        if len(messages[-1].content) > 4000:
            raise StatusError("This model's maximum context length is 4000", status=400)
        return "<new>Answer briefly.</new>"

    def step(prompts):
        prompt = Variable("Answer.", role="prompt", requires_grad=True)
        answers = [fill("{prompt} {number}", prompt=prompt, number=number) for number in range(98)]
        backward([exact_match(answer, "right, and with all its reasons")[0] for answer in answers])
        TextualGradientDescent([prompt], small, prompts=prompts).step()

    with pytest.raises(StatusError):
        step(PROMPTS)
    step(Prompts(limit=3000))
    assert re.search(r"\[\d\d of 98 comments are left out: \d+ characters\]", asked[-1])
