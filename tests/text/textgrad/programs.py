"""Programs under TextGrad's names, which run on TextGrad and on gradspec.

python programs.py MODULE      prints what each of them asked for, and what came of it, as JSON
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter


class Programs:
    """Programs, with one engine that counts what it is asked in forward, on the way back, and in a step."""

    def __init__(self, module: str) -> None:
        self.tg = importlib.import_module(module)
        self.autograd = importlib.import_module(f"{module}.autograd")
        self.losses = importlib.import_module(f"{module}.loss")
        self.optimizers = importlib.import_module(f"{module}.optimizer")
        self.calls: Counter[str] = Counter()
        self.phase = "forward"
        programs = self

        class Engine(self.tg.EngineLM):
            model_string = "counts"

            def generate(self, prompt, system_prompt=None, **options):
                programs.calls[programs.phase] += 1
                said = {"forward": "an answer", "backward": "say less"}
                return said.get(programs.phase, "<IMPROVED_VARIABLE>better</IMPROVED_VARIABLE>")

            def __call__(self, prompt, **options):
                return self.generate(prompt, **options)

        self.engine = Engine()

    def variable(self, text, role, requires_grad=True):
        return self.tg.Variable(text, role_description=role, requires_grad=requires_grad)

    def learned(self, loss, parameters, **options):
        """Go back from a loss and make a step; return what is to be compared."""
        self.phase = "backward"
        loss.backward(self.engine)
        told = [parameter.get_gradient_text() for parameter in parameters]
        self.phase = "step"
        optimizer = self.tg.TGD(parameters, engine=self.engine, **options)
        optimizer.step()
        values = [parameter.value for parameter in parameters]
        optimizer.zero_grad()
        left = [len(parameter.gradients) for parameter in parameters]
        return {"calls": dict(self.calls), "told": told, "values": values, "left": left}

    def system_prompt(self):
        prompt = self.variable("Answer.", "system prompt")
        model = self.tg.BlackboxLLM(self.engine, prompt)
        answer = model(self.variable("2 + 2?", "question", requires_grad=False))
        return self.learned(self.tg.TextLoss("Is it short?", self.engine)(answer), model.parameters())

    def solution(self):
        text = self.variable("x = 5", "solution of an equation")
        return self.learned(self.tg.TextLoss("Find errors.", self.engine)(text), [text], constraints=["Be brief."])

    def minibatch(self):
        prompt = self.variable("Answer.", "system prompt")
        model, loss = self.tg.BlackboxLLM(self.engine, prompt), self.tg.TextLoss("Is it short?", self.engine)
        questions = [self.variable(f"{n} + {n}?", "question", requires_grad=False) for n in range(3)]
        return self.learned(self.tg.sum([loss(model(question)) for question in questions]), [prompt])

    def template(self):
        inputs = {name: self.variable(name * 3, name) for name in ("question", "hint")}
        call = self.autograd.FormattedLLMCall(self.engine, "{question} ({hint})", dict.fromkeys(inputs))
        return self.learned(call(inputs), [*inputs.values()])

    def function(self):
        def longer(text, other):
            return str(len(text.value) - len(other.value))

        inputs = {"text": self.variable("four", "text"), "other": self.variable("one", "other", requires_grad=False)}
        call = self.autograd.StringBasedFunction(longer, "how much longer a text is")
        return self.learned(call(inputs), [inputs["text"]])

    def fields(self):
        instruction = self.variable("Is the answer right?", "instruction", requires_grad=False)
        loss = self.losses.MultiFieldEvaluation(instruction, ["question", "answer"], engine=self.engine)
        answer = self.variable("five", "answer")
        return self.learned(loss([self.variable("2 + 2?", "question", requires_grad=False), answer]), [answer])

    def memory(self):
        text = self.variable("x = 5", "solution of an equation")
        loss = self.tg.TextLoss("Find errors.", self.engine)
        self.learned(loss(text), [text], gradient_memory=2)
        self.phase = "forward"
        return self.learned(loss(text), [text], gradient_memory=2)


NAMES = ("system_prompt", "solution", "minibatch", "template", "function", "fields", "memory")


def results(module: str) -> dict[str, object]:
    """Return what came of each program."""
    return {name: getattr(Programs(module), name)() for name in NAMES}


if __name__ == "__main__":
    print(json.dumps(results(*sys.argv[1:])))
