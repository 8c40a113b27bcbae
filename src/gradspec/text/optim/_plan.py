"""Plan an optimization: its largest possible cost, and how much of it a budget allows for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradspec.text.lm._errors import BudgetError
from gradspec.text.optim._gain import POINTS, examples_needed

if TYPE_CHECKING:
    from gradspec.text.lm._budget import Budget
    from gradspec.text.optim._rehearsal import Asked


@dataclass(frozen=True, kw_only=True)
class Load:
    """The most requests of one part of an optimization, if no call fails."""

    #: What is done, such as `step 1, compare`.
    name: str
    #: Calls at most: every prediction gets feedback, every new text is repaired, every schema takes all its attempts.
    calls: int
    #: Tokens at most; None if a reply has no limit such as `max_tokens`.
    tokens: int | None
    #: Money at most, by the price table; None without a price of each model, or without `tokens`.
    money: float | None

    @classmethod
    def of(cls, name: str, asked: Sequence[Asked], prices: Mapping[str, tuple[float, float]]) -> Load:
        """Return the sum of calls."""
        tokens: int | None = 0
        money: float | None = 0.0
        for call in asked:
            if call.tokens is None:
                return cls(name=name, calls=sum(call.calls for call in asked), tokens=None, money=None)
            said, replied = call.tokens
            tokens = (tokens or 0) + said + replied
            price = prices.get(call.model)
            money = None if money is None or price is None else money + (said * price[0] + replied * price[1]) / 1e6
        return cls(name=name, calls=sum(call.calls for call in asked), tokens=tokens, money=money)

    def __str__(self) -> str:
        tokens = "tokens without a bound" if self.tokens is None else f"{self.tokens} tokens"
        money = "" if self.money is None or not self.money else f", {self.money:.4f} in money"
        return f"{self.name}: at most {_calls(self.calls)}, {tokens}{money}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The requests of an optimization, found without calling a model.

    Replies that a cache holds cost nothing and are not counted. Attempts of a `Client` after a call that failed are not
    counted either. A reply that is sent on counts as many tokens as it may have, where a `Budget` reserves its bytes.
    """

    #: The parts, in their order: the first texts scored, for each step a proposal and its comparison, the test.
    loads: tuple[Load, ...]
    #: All of it.
    total: Load
    #: What one honest comparison takes: the first texts and one proposal, scored on the same examples that validate.
    comparison: Load
    #: The calls that a comparison takes at least, if one prediction gets feedback.
    least_calls: int
    #: The tokens that must be left at least for the dearest call of a comparison to be made.
    least_tokens: int
    #: The calls and the tokens that the budget has left; None without a budget, or without that limit.
    left: tuple[int | None, int | None]
    #: How many proposals fit the budget, if all cost the most; None without a budget.
    proposals: int | None
    #: How many of them can be compared too.
    comparisons: int | None
    #: How many different examples test.
    tests: int
    #: What else is to be known.
    remarks: tuple[str, ...] = ()

    @property
    def needed(self) -> tuple[int, int]:
        """How many examples that test would show a difference of 5 points with a chance of 80 %, for scores of 0 or 1.

        The first number holds if the new text only mends answers, the second if the answers of the two texts have
        nothing to do with each other, each half of them right.
        """
        return examples_needed(POINTS), examples_needed(0.5)

    def check(self) -> None:
        """Raise `BudgetError` if the budget does not allow for one comparison."""
        calls, tokens = self.left
        few = calls is not None and calls < self.least_calls
        if few or (tokens is not None and tokens < self.least_tokens):
            has = f"{_calls(calls or 0)}" if few else f"{tokens} tokens"
            needs = f"{_calls(self.least_calls)}" if few else f"{self.least_tokens} tokens"
            enough = f"{_calls(self.comparison.calls)}"
            if self.comparison.tokens is not None and tokens is not None:
                enough += f" and {self.comparison.tokens} tokens"
            raise BudgetError(
                f"the budget has {has} left, and one comparison of a new text with the old one takes at least {needs}; "
                f"{enough} suffice{self._and_the_test}"
            )

    @property
    def _and_the_test(self) -> str:
        test = self.loads[-1]
        return f", and the test at the end takes up to {_calls(test.calls)} more" if test.name == "test" else ""

    def __str__(self) -> str:
        lines = [*map(str, self.loads), str(self.comparison), str(self.total)]
        if self.proposals is not None:
            lines.append(
                f"the budget allows for {self.proposals} proposal{'' if self.proposals == 1 else 's'} and "
                f"{self.comparisons} comparison{'' if self.comparisons == 1 else 's'}, if each costs the most"
            )
        given = zip(self.left, (self.total.calls, self.total.tokens), strict=True)
        if self._and_the_test and any(left is not None and (most is None or left < most) for left, most in given):
            lines.append("all of it may take more than the budget has left, and without the test nothing is shown")
        few, many = self.needed
        has = f"there {'is' if self.tests == 1 else 'are'} {self.tests}"
        lines.append(f"to show a difference of 5 points takes {few} to {many} different examples that test; {has}")
        return "\n".join([*lines, *self.remarks])


def plan_of(
    parts: Sequence[tuple[str, Sequence[Asked]]],
    least: Sequence[Asked],
    prices: Mapping[str, tuple[float, float]],
    budget: Budget | None,
    tests: int,
    remarks: Sequence[str],
) -> Plan:
    """Return the plan of what was asked in each part, `least` being what one comparison surely asks."""
    counted = [[call for call in asked if call.budget is budget] if budget else asked for _, asked in parts]
    sure = [call for call in least if call.budget is budget] if budget else least
    # A cache pays for equal requests once.
    least_calls = len({call.key or place for place, call in enumerate(sure)})
    dearest = max((sum(call.tokens) for call in sure if call.tokens is not None), default=0)
    proposals = comparisons = None
    left: tuple[int | None, int | None] = (None, None) if budget is None else budget.left
    if budget is not None:
        proposals, comparisons = _fitting(parts, counted, left)
    return Plan(
        loads=tuple(Load.of(name, asked, prices) for name, asked in parts),
        total=Load.of("in all", [call for _, asked in parts for call in asked], prices),
        comparison=Load.of("one comparison", [call for _, asked in parts[:3] for call in asked], prices),
        least_calls=least_calls,
        least_tokens=dearest + max(0, least_calls - 1),  # each call before it costs one at least
        left=left,
        proposals=proposals,
        comparisons=comparisons,
        tests=tests,
        remarks=tuple(remarks),
    )


def _fitting(
    parts: Sequence[tuple[str, object]], counted: Sequence[Sequence[Asked]], left: tuple[int | None, int | None]
) -> tuple[int, int]:
    """Return how many proposals and comparisons fit what is left, one part after the other."""
    calls, tokens = (math.inf if limit is None else limit for limit in left)
    fitting = {"propose": 0, "compare": 0}
    for (name, _), asked in zip(parts, counted, strict=True):
        load = Load.of(name, asked, {})
        calls -= load.calls
        tokens -= math.inf if load.tokens is None and left[1] is not None else load.tokens or 0
        if calls < 0 or tokens < 0:
            break
        kind = name.rpartition(", ")[2]
        if kind in fitting:
            fitting[kind] += 1
    return fitting["propose"], fitting["compare"]


def _calls(count: int) -> str:
    return f"{count} call{'' if count == 1 else 's'}"
