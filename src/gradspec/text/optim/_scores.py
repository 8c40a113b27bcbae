"""A program and a metric, run on examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from gradspec.text._grad_mode import no_grad
from gradspec.text._graph._backward import backward
from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._overlap import concurrency as overlapping
from gradspec.text.ops._evaluate import evaluate, is_number
from gradspec.text.optim._examples import Example

#: From a prediction and a target to a score, or to a score and what is to be said of the prediction.
Metric: TypeAlias = Callable[[Any, Any], Any]


class Run:
    """The program and the metric, run on examples."""

    def __init__(
        self, program: Callable[[Any], Variable], metric: Metric, success: Callable[[float], bool], concurrency: int
    ) -> None:
        self.program, self.metric, self.success, self.concurrency = program, metric, success, concurrency

    def scores(self, examples: Sequence[Example]) -> list[float]:
        """Return the score of each example; nothing is tracked."""
        with no_grad(), overlapping(self.concurrency):
            return [float(score.data) for score in [self._score(example) for example in examples]]  # type: ignore[arg-type]

    def learn(self, examples: Sequence[Example]) -> list[float]:
        """Return the score of each example, and leave the feedback in the parameters."""
        with overlapping(self.concurrency):
            scores = [self._score(example) for example in examples]
            for score in scores:
                if not score.requires_grad:
                    raise TypeError(
                        "the program's prediction does not depend on a parameter of the optimizer: an f-string and "
                        "`.data` lose it, `fill`, `join` and `+` keep it"
                    )
            backward(scores)
        return [float(score.data) for score in scores]  # type: ignore[arg-type]

    def _score(self, example: Example) -> Variable:
        given, target = example
        prediction = self.program(given)
        if not isinstance(prediction, Variable):
            raise TypeError(f"the program returned {prediction!r}; it must return a Variable")
        return evaluate(self._judged, prediction, _Whole(target), success=self.success)[0]

    def _judged(self, prediction: Any, target: _Whole) -> tuple[float, str]:
        found = self.metric(prediction, target.value)
        if not is_number(found[0] if isinstance(found, tuple) and len(found) == 2 else found):
            raise TypeError(f"a metric returns a number, or a number and side information, not {found!r}")
        if not isinstance(found, tuple):
            return found, f"The score is {found}. Wanted was {target.value!r}."
        return found[0], str(found[1])


class _Whole:
    """A target that is handed on as it is, a list too."""

    def __init__(self, value: Any) -> None:
        self.value = value
