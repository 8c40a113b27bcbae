"""Text autodiff under TextGrad's names, for programs that were written for it.

`import gradspec.text.textgrad as tg` takes the place of `import textgrad as tg`, and each submodule that of TextGrad's
submodule of the same name. The texts that a language model is told are ours, and so is what runs: the engine, the
models and the optimizer of `gradspec.text`.
"""

from typing import Any

from gradspec.text.textgrad._absent import absent
from gradspec.text.textgrad.autograd import sum  # noqa: A004 -- TextGrad's name
from gradspec.text.textgrad.config import SingletonBackwardEngine, set_backward_engine
from gradspec.text.textgrad.engine import EngineLM, get_engine
from gradspec.text.textgrad.loss import TextLoss
from gradspec.text.textgrad.model import BlackboxLLM
from gradspec.text.textgrad.optimizer import TGD, TextualGradientDescent
from gradspec.text.textgrad.variable import Variable

__all__ = [
    "TGD",
    "BlackboxLLM",
    "EngineLM",
    "SingletonBackwardEngine",
    "TextLoss",
    "TextualGradientDescent",
    "Variable",
    "get_engine",
    "set_backward_engine",
    "sum",
]


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
