"""A language model as a judge."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import median
from typing import Any

from gradspec.text._graph._variable import Variable
from gradspec.text.lm import Client, Model, complete
from gradspec.text.lm._model import check_model
from gradspec.text.ops._evaluate import Votes, evaluate
from gradspec.text.ops._prompts import PROMPTS, Prompts
from gradspec.text.ops._tags import contents, without_reasoning
from gradspec.text.ops._template import filled

SCORE = re.compile(r"<score>[^<]*</score>", re.IGNORECASE)
QUOTED = re.compile(r"<(prediction|target)>.*?</\1>", re.DOTALL | re.IGNORECASE)


def judge(
    model: Model,
    task: str,
    prediction: Variable,
    target: Any = "(none)",
    *,
    rubric: Sequence[str] = (),
    scale: tuple[float, float] = (0, 1),
    votes: int = 1,
    prompts: Prompts = PROMPTS,
    **options: Any,
) -> tuple[Variable, Variable]:
    """Have a language model score a prediction from 0 to 1; its explanation is the feedback.

    The last score of the answer counts, outside of the model's reasoning and of what it quotes of the prediction: no
    prediction scores itself. An answer without one score is asked for once more.

    Args:
        model: Any callable that is a model.
        task: What a prediction is for and what makes a good one, in words.
        prediction: A text, or a list of them; then the model is called for each.
        target: What is right, if that is known.
        rubric: What the model is to look at, a criterion each.
        scale: The worst and the best score that the model may give, such as `(1, 5)`; the result is from 0 to 1
            nonetheless.
        votes: How often the model is asked; the score is the median, the explanation one that came with it, or with
            the score next to it. A `Client` is given `sample=0`, `sample=1`, ..., so that a cache keeps them apart.
            Inside `concurrency(k)` the votes overlap.
        prompts: What the model is told.
        **options: `success` and `reduction`, as for `evaluate`.

    Raises:
        ValueError: the judge's answer has twice no score, one that is not on the scale, or one that may be quoted from
            the prediction.

    Example:
        >>> from gradspec.text import Variable
        >>> def model(messages):
        ...     return "Too long. <score>3</score>"
        >>> score, explanation = judge(model, "A good answer is short.", Variable("Well, in fact ..."), scale=(1, 5))
        >>> score.data, explanation.data
        (0.5, 'Too long.')
    """
    check_model(model)
    low, high = _checked(scale)
    if not isinstance(task, str | Variable):
        raise TypeError(f"task says in words what a prediction is for, not {task!r}")
    if isinstance(rubric, str):
        raise TypeError(f"rubric is a list of texts; write [{rubric!r}]")
    if not isinstance(rubric, Sequence) or not all(isinstance(criterion, str) for criterion in rubric):
        raise TypeError(f"rubric is a list of texts, not {rubric!r}")
    if not isinstance(votes, int) or isinstance(votes, bool) or votes < 1:
        raise ValueError(f"votes counts the calls for one prediction: 1 or more, not {votes!r}")

    def vote(prediction: Any, target: Any, vote: int) -> tuple[float, str]:
        places = {"task": task, "prediction": prediction, "target": target, "low": f"{low:g}", "high": f"{high:g}"}
        prompt = filled(prompts.judge, {name: value for name, value in places.items() if _asked(prompts, name)})
        if rubric:
            prompt += filled(prompts.rubric, {"rubric": "\n".join(f"- {criterion}" for criterion in rubric)})
        return _voted(model, prompt, str(prediction), (low, high), prompts, {"sample": vote} if vote else {})

    def count(said: Sequence[tuple[float, str]]) -> tuple[float, str]:
        middle = median(score for score, _ in said)
        explanation = min(said, key=lambda vote: abs(vote[0] - middle))[1]
        return (middle - low) / (high - low), explanation

    return evaluate(Votes(vote=vote, count=count, votes=votes), prediction, target, **options)


def _asked(prompts: Prompts, name: str) -> bool:
    # A template of the user's own may say what the scale is.
    return name not in ("low", "high") or f"{{{name}}}" in prompts.judge


def _voted(
    model: Model, prompt: str, prediction: str, scale: tuple[float, float], prompts: Prompts, sample: dict[str, int]
) -> tuple[float, str]:
    options = sample if isinstance(model, Client) else {}
    said = [{"role": "user", "content": prompt}]
    first = answer = complete(model, said, **options).text
    score = _score(answer, prediction, scale)
    if score is None:
        low, high = scale
        repair = filled(prompts.judge_repair, {"low": f"{low:g}", "high": f"{high:g}"})
        said += [{"role": "assistant", "content": answer or "(nothing)"}, {"role": "user", "content": repair}]
        answer = complete(model, said, **options).text
        score = _score(answer, prediction, scale)
    if score is None:
        low, high = scale
        why = _why_none(answer, prediction)
        raise ValueError(f"the judge's answer has no <score> from {low:g} to {high:g}{why}, asked twice: {answer!r}")
    return score, _explained(first) or _explained(answer)


def _explained(answer: str) -> str:
    return SCORE.sub("", without_reasoning(answer, "score")).strip()


def _score(answer: str, prediction: str, scale: tuple[float, float]) -> float | None:
    """Return the last score outside of what is quoted; None where there is none, or where it may be a quotation."""
    said = without_reasoning(answer, "score")
    if SCORE.fullmatch(said) is None and SCORE.search(prediction):
        said = QUOTED.sub("", said.replace(prediction, ""))
        tags = [tag.group() for tag in SCORE.finditer(said)]
        if len(set(tags)) > 1 and tags[-1] in prediction:
            return None
    found = contents(said, "score")
    try:
        score = float(found[-1])
    except (IndexError, ValueError):
        return None
    return score if scale[0] <= score <= scale[1] else None


def _why_none(answer: str, prediction: str) -> str:
    """Return why what looks like a score is none; empty where nothing does."""
    if not (found := contents(answer, "score")):
        hidden = SCORE.search(answer) is not None
        return ": it is in the model's reasoning, or behind a tag such as <think> that is not closed" if hidden else ""
    try:
        score = float(found[-1])
    except ValueError:
        return f": {found[-1].strip()!r} is not a number"
    if SCORE.search(prediction) and any(tag.group() in prediction for tag in SCORE.finditer(answer)):
        return " of its own: the prediction has a <score> too, and the answer may quote it"
    return f": {score:g} is not on that scale"


def _checked(scale: tuple[float, float]) -> tuple[float, float]:
    if not _is_pair(scale) or not (math.isfinite(scale[0]) and math.isfinite(scale[1]) and scale[0] < scale[1]):
        raise ValueError(f"a scale is the worst and the best score, the worst first, not {scale!r}")
    return scale


def _is_pair(scale: object) -> bool:
    return isinstance(scale, tuple | list) and len(scale) == 2 and all(isinstance(end, int | float) for end in scale)
