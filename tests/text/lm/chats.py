"""Programs that ask a model in forward and in backward, for the tests; run as a script, one that can be killed.

python chats.py URL CACHE MODE      prints the gradients of sixteen branches as JSON
"""

from __future__ import annotations

import json
import sys

from gradspec.text import Variable, ops
from gradspec.text.lm import Cache, Client, OpenAIModel, Retry

BRANCHES = 16


def branches(model, system=None):
    """Return the parameters and the loss of sixteen branches joined by a sum."""
    prompts = [Variable(f"prompt {i}", role=f"prompt {i}", requires_grad=True) for i in range(BRANCHES)]
    shared = [] if system is None else [{"role": "system", "content": system}]
    answers = [ops.chat(model, [*shared, {"role": "user", "content": prompt}]) for prompt in prompts]
    loss = ops.chat(model, [{"role": "user", "content": ops.sum(answers)}])
    return [*([] if system is None else [system]), *prompts], loss


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
