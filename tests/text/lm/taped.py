"""A program that tunes a prompt and records it in a cassette, for the tests; it may be killed at any moment.

python taped.py URL FILE      prints the report as JSON
"""

import sys

from gradspec.text import Variable
from gradspec.text.lm import Cassette, OpenAIModel
from gradspec.text.ops import chat
from gradspec.text.optim import TextualGradientDescent, optimize

DATA = [(f"question {i}", f"answer {i}") for i in range(16)]


def main(url, file):
    model = OpenAIModel("echo", base_url=url)
    prompt = Variable("Answer.", role="system prompt", requires_grad=True)

    def answer(question):
        return chat(model, [{"role": "system", "content": prompt}, {"role": "user", "content": question}])

    def metric(prediction, target):
        return int(prediction[:4], 16) / 16**4, f"{prediction[:8]} is not {target}."

    writer = TextualGradientDescent([prompt], model)
    with Cassette(file, mode="resume"):
        print(optimize(answer, DATA, metric, writer, steps=6, batch=3, concurrency=8).to_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
