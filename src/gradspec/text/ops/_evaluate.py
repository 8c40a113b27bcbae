"""Evaluators: a score and an explanation; on the way back the explanation is the feedback, where there is a fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean
from typing import Any, TypeAlias

from gradspec.text._function import Function
from gradspec.text._overlap import overlap
from gradspec.text._variable import Variable

#: From a prediction and a target to a score and an explanation.
Scorer: TypeAlias = Callable[[Any, Any], tuple[float, str]]


class Evaluate(Function):
    """Score predictions; the gradient of a prediction is its explanation, and None where it succeeded.

    A prediction that succeeded prunes its branch: nothing above it is asked for feedback.
    """

    @staticmethod
    def forward(
        ctx: Any,
        prediction: Variable,
        target: Any,
        scorer: Scorer,
        success: Callable[[float], bool],
        reduction: Callable[[Sequence[float]], float],
    ) -> tuple[Variable, Variable]:
        """Return the score and the explanation."""
        if not isinstance(prediction, Variable):
            raise TypeError(f"a prediction is a Variable, not {prediction!r}")
        for name, call in (("scorer", scorer), ("success", success), ("reduction", reduction)):
            if not callable(call):
                raise TypeError(f"{name} is not callable: {call!r}")
        single = not isinstance(prediction.data, list)
        predictions: Any = [prediction.data] if single else prediction.data
        wanted = target.data if isinstance(target, Variable) else target
        targets = list(wanted) if isinstance(wanted, list | tuple) else [wanted] * len(predictions)
        if len(targets) != len(predictions):
            raise ValueError(f"{len(predictions)} predictions cannot be compared with {len(targets)} targets")
        if not predictions:
            raise ValueError("there is no prediction to score; the list is empty")
        found = overlap([partial(_scored, scorer, p, t) for p, t in zip(predictions, targets, strict=True)])
        scores, explanations = [score for score, _ in found], [text for _, text in found]
        ctx.single, ctx.role = single, prediction.role
        ctx.faults = [("" if success(score) else text) for score, text in found]
        return (
            Variable(scores[0] if single else _reduced(scores, reduction), role="score"),
            Variable(explanations[0] if single else explanations, role="explanation"),
        )

    @staticmethod
    def backward(ctx: Any, grad_score: Variable | None, grad_explanation: Variable | None) -> tuple[Any, ...]:
        """Return the explanations of what failed, and what was said of the evaluation; None if nothing failed."""
        if not any(ctx.faults):
            return (None,) * 5
        said = [g.data for g in (grad_score, grad_explanation) if g is not None and isinstance(g.data, str) and g.data]
        texts = ["\n".join([fault, *said]) if fault else "" for fault in ctx.faults]
        return Variable(texts[0] if ctx.single else texts, role=f"feedback to {ctx.role}"), None, None, None, None


def evaluate(
    scorer: Scorer,
    prediction: Variable,
    target: Any,
    *,
    success: Callable[[float], bool] = lambda score: score >= 1,
    reduction: Callable[[Sequence[float]], float] = fmean,
) -> tuple[Variable, Variable]:
    """Return the score of a prediction and its explanation, as a function of yours gives them.

    Args:
        scorer: `scorer(prediction, target)` returns a number and a text.
        prediction: A text, or a list of them.
        target: What is right: a Variable or a value; for a list one for each, or one for all.
        success: Of a score, whether nothing needs to change; such a prediction gets no feedback, and no model is
            asked for any.
        reduction: From the scores of a list to one.

    Raises:
        TypeError: the scorer does not return a finite number and a text.
        ValueError: the list of targets is not as long as that of predictions, there are no predictions, or the
            reduction does not return a finite number.

    Example:
        >>> from gradspec.text import Variable
        >>> prediction = Variable("12 apples", role="answer", requires_grad=True)
        >>> score, explanation = evaluate(lambda p, t: (float(t in p), f"It lacks {t!r}."), prediction, "pears")
        >>> score.backward()
        >>> score.data, prediction.grad.data
        (0.0, "It lacks 'pears'.")
    """
    result: tuple[Variable, Variable] = Evaluate.apply(prediction, target, scorer, success, reduction)
    return result


def exact_match(prediction: Variable, target: Any, **options: Any) -> tuple[Variable, Variable]:
    """Return 1 where a prediction is its target, white space at both ends aside, else 0; and an explanation.

    Args:
        prediction: A text, or a list of them.
        target: What is right.
        **options: `success` and `reduction`, as for `evaluate`.

    Example:
        >>> from gradspec.text import Variable
        >>> score, explanation = exact_match(Variable(["4", "5"]), ["4", "6"])
        >>> score.data, explanation.data[1]
        (0.5, "The prediction is '5', and '6' is right.")
    """
    return evaluate(_matches, prediction, target, **options)


def _scored(scorer: Scorer, prediction: Any, target: Any) -> tuple[float, str]:
    found = scorer(prediction, target)
    if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[1], str) or not _is_number(found[0]):
        raise TypeError(f"a scorer returns a finite number and a text that explains it, not {found!r}")
    return found


def _reduced(scores: Sequence[float], reduction: Callable[[Sequence[float]], float]) -> float:
    score = reduction(scores)
    if not _is_number(score):
        raise ValueError(f"the reduction returned {score!r} for the scores {scores!r}; it must be a finite number")
    return score


def _is_number(score: object) -> bool:
    return isinstance(score, int | float) and math.isfinite(score)


def _matches(prediction: Any, target: Any) -> tuple[float, str]:
    if str(prediction).strip() == str(target).strip():
        return 1.0, "The prediction is right."
    return 0.0, f"The prediction is {str(prediction)!r}, and {str(target)!r} is right."
