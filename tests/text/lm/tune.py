"""A program of thirty lines that tunes a prompt with validation, for the tests; it may be killed at any moment.

python tune.py URL FOLDER      prints the report as JSON
"""

import sys
from pathlib import Path

from gradspec.text import Variable
from gradspec.text.lm import Budget, Cache, Client, OpenAIModel
from gradspec.text.ops import chat
from gradspec.text.optim import TextualGradientDescent, optimize

DATA = [(f"question {i}", f"answer {i}") for i in range(16)]


def main(url, folder):
    cache = Cache(Path(folder) / "replies.sqlite3")
    budget = Budget(calls=2000, kept=cache)
    model = Client(OpenAIModel("echo", base_url=url), cache=cache, budget=budget)
    prompt = Variable("Answer.", role="system prompt", requires_grad=True)

    def answer(question):
        return chat(model, [{"role": "system", "content": prompt}, {"role": "user", "content": question}])

    def metric(prediction, target):
        return int(prediction[:4], 16) / 16**4, f"{prediction[:8]} is not {target}."

    writer = TextualGradientDescent([prompt], model, momentum=2)
    settings = {"steps": 6, "batch": 3, "concurrency": 8, "prices": {"echo": (1.0, 2.0)}}
    print(optimize(answer, DATA, metric, writer, checkpoint=Path(folder) / "run.json", **settings).to_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
