"""Programs that ask a model in forward and in backward, for the tests; run as a script, one that can be killed.

python chats.py URL CACHE MODE      prints the gradients of sixteen branches as JSON
"""

from __future__ import annotations

import json
import sys

from gradspec.text import Function, Variable, later
from gradspec.text.lm import Cache, Client, OpenAIModel, Retry, complete

BRANCHES = 16


class Ask(Function):
    """Ask a model with what its inputs say; in backward, ask once for each input what to change in it."""

    io_bound = True

    @staticmethod
    def forward(ctx, model, *inputs):
        ctx.save_for_backward(*inputs)
        ctx.model = model
        return Variable(complete(model, "\n".join(v.data for v in inputs)).text, role="answer")

    @staticmethod
    def backward(ctx, grad_out):
        def feedback(v):
            return Variable(complete(ctx.model, f"Change {v.data!r} ({v.role}), given: {grad_out.data}").text)

        needed = zip(ctx.saved_variables, ctx.needs_input_grad[1:], strict=True)
        return (None, *(later(feedback, v) if need else None for v, need in needed))


def branches(model, system=None):
    """Return the parameters and the loss of sixteen branches joined by a sum."""
    prompts = [Variable(f"prompt {i}", role=f"prompt {i}", requires_grad=True) for i in range(BRANCHES)]
    shared = [] if system is None else [system]
    answers = [Ask.apply(model, *shared, prompt) for prompt in prompts]
    joined = answers[0]
    for answer in answers[1:]:
        joined = joined + answer
    return [*shared, *prompts], Ask.apply(model, joined)


def told(variables):
    """Return all that the gradients say, in plain data."""
    return [v.grad and [v.grad.data, [str(part) for part in v.grad.parts]] for v in variables]


def main(url, path, mode):
    patient = Retry(attempts=4, first_delay=0.01)
    model = Client(OpenAIModel("echo", base_url=url, timeout=30), cache=Cache(path, mode=mode), retry=patient)
    system = Variable("Be brief.", role="system prompt", requires_grad=True)
    parameters, loss = branches(model, system)
    print("forward is done", flush=True)
    loss.backward(Variable("shorter"), max_concurrency=4)
    print(json.dumps(told(parameters)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
