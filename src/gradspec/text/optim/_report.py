"""The report of an optimization, as text and as JSON: scores with intervals, requests and costs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from gradspec.text.optim._gain import Gain
from gradspec.text.optim._interval import interval


@dataclass(frozen=True, kw_only=True)
class Score:
    """A mean of scores, and where the mean of such examples lies."""

    #: The mean.
    mean: float
    #: Where the 95 % interval of the mean begins: Wilson's for scores that are all 0 or 1, else Student's. None if the
    #: scores are all the same number and not 0 or 1, or there is only one: they do not say how much they vary.
    low: float | None
    #: Its upper end.
    high: float | None
    #: How many examples were scored.
    examples: int

    @classmethod
    def of(cls, scores: Sequence[float]) -> Score:
        """Return the mean of scores with its interval.

        Raises:
            ValueError: there are none, or one is no number.

        Example:
            >>> print(Score.of([1.0, 1.0]))
            1.000 (0.342 to 1.000, 2 examples)
        """
        if not scores or not all(map(math.isfinite, scores)):
            raise ValueError(f"a score is the mean of numbers, of one at least: got {scores!r}")
        low, high = interval(scores) or (None, None)
        return cls(mean=fmean(scores), low=low, high=high, examples=len(scores))

    def __str__(self) -> str:
        where = "no interval" if self.low is None or self.high is None else f"{self.low:.3f} to {self.high:.3f}"
        return f"{self.mean:.3f} ({where}, {self.examples} example{'' if self.examples == 1 else 's'})"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of an optimization."""

    #: The places of the examples of its minibatch, among those that train.
    batch: tuple[int, ...]
    #: The mean score of the minibatch before the step.
    training: float
    #: The mean score of the new texts on the examples that validate; None where there was no new text.
    validation: float | None
    #: Whether the new texts were kept.
    accepted: bool
    #: What became of it, in a few words.
    outcome: str


@dataclass(frozen=True, kw_only=True)
class Optimized:
    """The report of an optimization.

    Its calls and tokens are those of every reply that it was given, from a cache or not; a run that was killed and
    resumed reports what one that was not reports.
    """

    #: The texts of the parameters before.
    before: tuple[str, ...]
    #: The best texts on the examples that validate.
    best: tuple[str, ...]
    #: What the parameters hold: the best texts, or the first ones where the best are not shown to be better.
    after: tuple[str, ...]
    #: The roles of the parameters.
    roles: tuple[str, ...]
    #: The scores of the first texts on the examples that validate.
    validation_before: Score
    #: Those of the best texts.
    validation_after: Score
    #: The scores of the first texts on the examples that test; None without such examples.
    test_before: Score | None
    #: Those of the best texts.
    test_after: Score | None
    #: How much better the best texts are on those examples; None without such examples.
    gain: Gain | None
    #: Each step.
    steps: tuple[Step, ...]
    #: Why it ended.
    ended: str
    #: For each model: replies, tokens of the messages, tokens of the replies.
    models: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    #: For each model the price of a million tokens, of messages and of replies.
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """The replies of all models."""
        return sum(row[0] for row in self.models.values())

    @property
    def tokens(self) -> int:
        """The tokens of all messages and replies, as the servers counted them."""
        return sum(row[1] + row[2] for row in self.models.values())

    @property
    def cost(self) -> float | None:
        """The money by the price table; None where a model that was asked has no price."""
        if not self.models or not set(self.models) <= set(self.prices):
            return None
        return sum(
            (row[1] * self.prices[name][0] + row[2] * self.prices[name][1]) / 1e6 for name, row in self.models.items()
        )

    def to_json(self) -> str:
        """Return the report as JSON."""
        shown = None if self.gain is None else self.gain.shown
        return json.dumps(
            asdict(self) | {"shown": shown, "calls": self.calls, "tokens": self.tokens, "cost": self.cost}, indent=1
        )

    def page(self) -> str:
        """Return the report as an HTML page of its own, with the curve and the diff of each text."""
        from gradspec.text.optim._page import page

        return page(self)

    def __str__(self) -> str:
        lines = [f"validation: {self.validation_before} -> {self.validation_after}"]
        if self.test_before is not None:
            lines.append(f"test: {self.test_before} -> {self.test_after}")
        if self.gain is not None:
            lines.append(f"difference: {self.gain}{'' if self.after == self.best else '; the first texts are kept'}")
            if self.gain.needed is not None and not self.gain.shown:
                lines.append(f"a difference of 5 points would need {self.gain.needed} examples that test")
        for number, step in enumerate(self.steps, 1):
            shown = "" if step.validation is None else f", validation {step.validation:.3f}"
            lines.append(f"step {number}: training {step.training:.3f}{shown}: {step.outcome}")
        cost = "" if self.cost is None else f", {self.cost:.4f} in money"
        return "\n".join([*lines, f"ended: {self.ended}", f"{self.calls} calls, {self.tokens} tokens{cost}"])


def step_of(data: dict[str, Any]) -> Step:
    """Return a step that a checkpoint holds."""
    return Step(**{**data, "batch": tuple(data["batch"])})
