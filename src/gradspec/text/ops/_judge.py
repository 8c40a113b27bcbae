"""A language model as a judge."""

from __future__ import annotations

import re
from typing import Any

from gradspec.text._variable import Variable
from gradspec.text.lm import Model, complete
from gradspec.text.ops._evaluate import evaluate
from gradspec.text.ops._prompts import PROMPTS, Prompts
from gradspec.text.ops._template import fill

SCORE = re.compile(r"<score>\s*([0-9]*\.?[0-9]+)\s*</score>")


def judge(
    model: Model,
    task: str,
    prediction: Variable,
    target: Any = "(none)",
    *,
    prompts: Prompts = PROMPTS,
    **options: Any,
) -> tuple[Variable, Variable]:
    """Return the score that a model gives a prediction, from 0 to 1, and its explanation.

    Args:
        model: Any callable that is a model.
        task: What a prediction is for and what makes a good one, in words.
        prediction: A text, or a list of them; then the model is called for each.
        target: What is right, if that is known.
        prompts: What the model is told.
        **options: `success` and `reduction`, as for `evaluate`.

    Raises:
        ValueError: the model's answer has no score, or one that is not from 0 to 1.

    Example:
        >>> from gradspec.text import Variable
        >>> def model(messages):
        ...     return "Too long. <score>0.5</score>"
        >>> score, explanation = judge(model, "A good answer is short.", Variable("Well, in fact ..."))
        >>> score.data, explanation.data
        (0.5, 'Too long.')
    """

    def scorer(prediction: Any, target: Any) -> tuple[float, str]:
        prompt = fill(prompts.judge, task=task, prediction=str(prediction), target=str(target))
        answer = complete(model, str(prompt.data)).text
        found = SCORE.search(answer)
        if found is None or not 0 <= float(found[1]) <= 1:
            raise ValueError(f"the judge's answer has no <score> from 0 to 1: {answer!r}")
        return float(found[1]), SCORE.sub("", answer).strip()

    return evaluate(scorer, prediction, target, **options)
