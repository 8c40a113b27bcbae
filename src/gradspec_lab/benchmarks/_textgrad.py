"""TextGrad's backward pass, for the benchmarks of text autodiff, which run this in a process of its own.

`python -m gradspec_lab.benchmarks._textgrad SITE ROUNDS SCALE` prints rows as JSON. Packages that TextGrad imports and
these programs never use are left empty; that is to its advantage, for litellm alone leaves 180 MB that the garbage
collector walks through.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import types
from typing import Any

UNUSED = ("litellm", "httpx", "diskcache", "platformdirs", "openai", "requests")


class _Empty(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


def load(site: str) -> Any:
    """Return TextGrad from a folder; its log goes to a folder of its own and is silent."""
    os.environ["TEXTGRAD_LOG_DIR"] = tempfile.mkdtemp(prefix="textgrad")
    sys.path.append(site)
    sys.modules.update({name: _Empty(name) for name in UNUSED if name not in sys.modules})
    import textgrad

    for name in UNUSED:
        if isinstance(sys.modules[name], _Empty):
            del sys.modules[name]  # other packages look whether one of them is there
    logging.getLogger("textgrad").setLevel(logging.CRITICAL)
    sys.setrecursionlimit(1_000_000)  # it recurses: as it is, a chain of 1,000 raises RecursionError
    return textgrad


def main(site: str, rounds: str, scale: str) -> None:
    """Measure the graphs of text_engine.py, and print them."""
    textgrad = load(site)
    from textgrad.autograd.llm_ops import LLMCall

    from gradspec_lab.benchmarks.text_engine import at_once, rates, sizes

    def engine(prompt: str, system_prompt: str | None = None) -> str:
        return at_once(prompt)

    def chain(n: int) -> Any:
        answer, call = textgrad.Variable("prompt", role_description="prompt"), LLMCall(engine)
        for _ in range(n):
            answer = call(answer)
        return answer

    def wide(n: int) -> Any:
        prompt, call = textgrad.Variable("prompt", role_description="prompt"), LLMCall(engine)
        return textgrad.sum([call(prompt) for _ in range(n)])

    def backward(top: Any) -> None:
        top.backward(engine=engine)

    graphs = [(chain, 1_000), (chain, 10_000), (wide, 1_000), (wide, 10_000)]
    sized = sizes(graphs, int(rounds), float(scale))
    print(json.dumps([rates(*size, kind="graph of TextGrad", backward=backward) for size in sized]))


if __name__ == "__main__":
    main(*sys.argv[1:])
