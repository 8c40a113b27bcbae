"""The backward pass of TextGrad: nobody says anything of the answer, and the graph is kept."""

from __future__ import annotations

from gradspec.text import Variable
from gradspec.text.textgrad.config import backward_engine, validate_engine_or_get_default
from gradspec.text.textgrad.engine.base import Engine

#: What an answer is told on the way back that nobody commented on: in most programs it is a judgement.
SEED = "The answer is a judgement. There should be nothing left in what it judges that it finds fault with."


def backward(variable: Variable, engine: Engine | str | None) -> None:
    """Ask an engine, call by call, what should change in all that a Variable was made of.

    Raises:
        ValueError: there is no engine.
    """
    seed = Variable(SEED, role="what to ask for") if isinstance(variable.data, str) else None
    with backward_engine(validate_engine_or_get_default(engine)):
        variable.backward(seed, retain_graph=True)
    if variable.grad_fn is not None:
        variable.grad = None  # the seed was not said by anybody
