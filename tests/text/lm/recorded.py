"""Programs drawn at random, and a model that never says the same twice, for the tests of cassettes."""

import random
import threading
import time

from gradspec.text import Variable, backward, concurrency
from gradspec.text.lm import Client, Completion, Retry, Usage
from gradspec.text.ops import chat, evaluate, exact_match, join, judge
from gradspec.text.optim import TextualGradientDescent

WORDS = ["Say", "please", "why", "not"]
PATIENT = Retry(attempts=9, first_delay=0.0, jitter=0.0)


class Moody:
    """A model whose replies, delays and failures are drawn anew at every call; it counts them."""

    def __init__(self, seed, *, faults=0.2, delay=0.0005):
        self.draw, self.faults, self.delay = random.Random(seed), faults, delay
        self.calls = 0
        self.lock = threading.Lock()

    def __call__(self, messages, **options):
        with self.lock:
            self.calls += 1
            number, wait, fault = self.calls, self.draw.random() * self.delay, self.draw.random()
        time.sleep(wait)
        if fault < self.faults:
            raise ConnectionResetError(f"fault {number}")
        score = number % 10 / 10
        text = f"reply {number}\n<new>new {number}</new> <score>{score}</score>"
        return Completion(text=text, usage=Usage(prompt_tokens=number, completion_tokens=1))


class Sober:
    """A model that says the same of the same, at moments drawn anew."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def __call__(self, messages, **options):
        time.sleep(self.draw.random() * 0.0005)
        said = sum(map(ord, "".join(message.content for message in messages)))
        return f"{said}\n<new>new {said}</new> <score>{said % 10 / 10}</score>"


def program(seed, model):
    """Run a program drawn by a seed, forward, back and one step; return all that came of it."""
    draw = random.Random(seed)
    prompts = [Variable(draw.choice(WORDS), role=f"prompt {i}", requires_grad=True) for i in range(draw.randint(1, 3))]
    values, losses = list(prompts), []
    for _ in range(draw.randint(2, 6)):
        one, other = draw.choice(values), draw.choice(values)
        match draw.randrange(4):
            case 0:
                values.append(one + " " + other)
            case 1:
                values.append(chat(model, [{"role": "user", "content": [one, " of ", other]}], role="answer"))
            case 2:
                values.append(join([one, other], ", "))
            case _:
                batch = Variable([draw.choice(WORDS) for _ in range(draw.randint(1, 3))], role="batch")
                many = chat(model, [{"role": "system", "content": one}, {"role": "user", "content": batch}])
                losses.append(exact_match(many, "right")[0])
    answer = chat(model, [{"role": "user", "content": values[-1]}])
    match draw.randrange(3):
        case 0:
            score, _ = judge(model, "Be short.", answer, votes=draw.randint(1, 3))
        case 1:
            score, _ = exact_match(answer, "right")
        case _:
            score, _ = evaluate(lambda p, t: (0.5, f"{p[:9]} is not {t}"), answer, "right")
    backward([*losses, score])
    found = [answer.data, *[loss.data for loss in (score, *losses)], *[p.grad and p.grad.data for p in prompts]]
    TextualGradientDescent(prompts, model).step()
    return [*found, *[prompt.data for prompt in prompts]]


def run(seed, model, limit):
    """Run a program with up to so many calls at once."""
    with concurrency(limit):
        return program(seed, model)


def client(seed, **settings):
    """Return a client around a moody model, and the model."""
    model = Moody(seed, **settings)
    return Client(model, name="moody", retry=PATIENT), model
