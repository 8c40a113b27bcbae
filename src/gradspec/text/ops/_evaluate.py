"""Evaluators: a score and an explanation; on the way back the explanation is the feedback, where there is a fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, TypeAlias

from gradspec.text._graph._deferred import computed, derived, given, length_of, now, variable_of
from gradspec.text._graph._function import Function
from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._pending import Pending

#: From a prediction and a target to a score and an explanation.
Scorer: TypeAlias = Callable[[Any, Any], tuple[float, str]]


@dataclass(frozen=True, kw_only=True)
class Votes:
    """A scorer that asks a model several times for each prediction; the calls may overlap."""

    #: From a prediction, a target and the number of the vote to a score and an explanation.
    vote: Callable[[Any, Any, int], tuple[float, str]]
    #: From the votes on one prediction, in their order, to a score and an explanation.
    count: Callable[[Sequence[tuple[float, str]]], tuple[float, str]]
    #: How many votes each prediction gets.
    votes: int

    def __call__(self, prediction: Any, target: Any) -> tuple[float, str]:
        """Return the score and the explanation, with one vote after the other."""
        return self.count([self.vote(prediction, target, vote) for vote in range(self.votes)])


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
        length = length_of(prediction)
        of_predictions, of_targets = given(prediction), given(target)
        wanted = 1 if length is None else length
        targets = length_of(target) if isinstance(target, Variable) else _length(target)
        if targets is not None and targets != wanted:
            raise ValueError(f"{wanted} predictions cannot be compared with {targets} targets")
        if not wanted:
            raise ValueError("there is no prediction to score; the list is empty")

        def calls() -> list[Any]:
            predictions, right = now(of_predictions), now(of_targets)
            pairs = zip(
                [predictions] if length is None else predictions,
                [right] * wanted if targets is None else right,
                strict=True,
            )
            if votes is None:
                return [partial(_scored, scorer, p, t) for p, t in pairs]
            return [partial(votes.vote, p, t, vote) for p, t in pairs for vote in range(votes.votes)]

        def scored(found: list[tuple[float, str]]) -> tuple[Any, Any]:
            if votes is not None:
                found = [votes.count(found[at : at + votes.votes]) for at in range(0, len(found), votes.votes)]
            scores, explanations = [score for score, _ in found], [text for _, text in found]
            ctx.faults = [("" if success(score) else text) for score, text in found]
            if length is None:
                return scores[0], explanations[0]
            return _reduced(scores, reduction), explanations

        ctx.single, ctx.role = length is None, prediction.role
        votes = scorer if isinstance(scorer, Votes) else None
        both = computed([of_predictions, of_targets], calls, scored, (float, None), asks=votes is not None)
        ctx._pending = both if isinstance(both, Pending) else None
        return (
            variable_of(derived([both], lambda: now(both)[0], (float, None)), "score"),
            variable_of(derived([both], lambda: now(both)[1], (str, length)), "explanation"),
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
    """Score a prediction by a function of yours; its explanation is the feedback, where there is a fault.

    Args:
        scorer: `scorer(prediction, target)` returns a score and an explanation: a number and a text.
        prediction: A text, or a list of them.
        target: What is right: a Variable or a value; for a list one for each, or one for all.
        success: Of a score, whether nothing needs to change; such a prediction gets no feedback, and no model is
            asked for any.
        reduction: From the scores of a list to one.

    Raises:
        TypeError: the scorer does not return a number and a text.
        ValueError: the number of targets is not that of predictions, there is no prediction, or the reduction does not
            return a finite number.

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
    """Score 1 where a prediction is its target, white space at both ends aside, and 0 elsewhere.

    Args:
        prediction: A text, or a list of them.
        target: What is right.
        **options: `success` and `reduction`, as for `evaluate`.

    Raises:
        ValueError: the number of targets is not that of predictions.

    Example:
        >>> from gradspec.text import Variable
        >>> score, explanation = exact_match(Variable(["4", "5"]), ["4", "6"])
        >>> score.data, explanation.data[1]
        (0.5, "The prediction is '5', and '6' is right.")
    """
    return evaluate(_matches, prediction, target, **options)


def _scored(scorer: Scorer, prediction: Any, target: Any) -> tuple[float, str]:
    found = scorer(prediction, target)
    if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[1], str) or not is_number(found[0]):
        raise TypeError(f"a scorer returns a number and a text that explains it, not {found!r}")
    return found


def _length(target: Any) -> int | None:
    return len(target) if isinstance(target, list | tuple) else None


def _reduced(scores: Sequence[float], reduction: Callable[[Sequence[float]], float]) -> float:
    score = reduction(scores)
    if not is_number(score):
        raise ValueError(f"the reduction returned {score!r} for the scores {scores!r}; it must be a finite number")
    return score


def is_number(score: object) -> bool:
    """Whether a score is one."""
    return isinstance(score, int | float) and math.isfinite(score)


def _matches(prediction: Any, target: Any) -> tuple[float, str]:
    if str(prediction).strip() == str(target).strip():
        return 1.0, "The prediction is right."
    return 0.0, f"The prediction is {str(prediction)!r}, and {str(target)!r} is right."
