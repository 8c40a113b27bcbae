"""The cost of model calls, counted on the node of the graph that made them."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

#: The node whose forward runs here, and the one whose backward does. What is asked within is that node's.
FORWARD: ContextVar[Any] = ContextVar("gradspec.text.forward", default=None)
BACKWARD: ContextVar[Any] = ContextVar("gradspec.text.backward", default=None)
_LOCK = threading.Lock()

#: For each way and model: calls, tokens of the messages, tokens of the replies, seconds.
Rows = dict[tuple[str, str], list[float]]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The model calls of one node of a graph, forward or backward.

    Only calls that were made count: not a reply from a cache, but each retry, and each call that failed.
    """

    #: Calls of models.
    calls: int = 0
    #: Tokens of the messages, as the models counted them.
    input_tokens: int = 0
    #: Tokens of the replies.
    output_tokens: int = 0
    #: Seconds of all calls; those of calls at the same time are added.
    seconds: float = 0.0
    #: The money by a price table; None without one, or where a model that was asked is not in it.
    money: float | None = None

    def __str__(self) -> str:
        tokens = (
            f", {self.input_tokens} + {self.output_tokens} tokens" if self.input_tokens or self.output_tokens else ""
        )
        money = "" if self.money is None else f", {self.money:.6f} in money"
        return f"{self.calls} call{'' if self.calls == 1 else 's'}{tokens}{money}"


def count(model: str, usage: Any, seconds: float) -> None:
    """Count a call on the node that it is made for, if it is made for one.

    Args:
        model: The model's name.
        usage: Its tokens, or None.
        seconds: How long it took.
    """
    way, node = "backward", BACKWARD.get()
    if node is None:
        way, node = "forward", FORWARD.get()
    if node is None:
        return
    said, replied = (usage.prompt_tokens, usage.completion_tokens) if usage is not None else (0, 0)
    with _LOCK:
        if node._costs is None:
            node._costs = {}
        row = node._costs.setdefault((way, model), [0, 0, 0, 0.0])
        row[:] = [row[0] + 1, row[1] + said, row[2] + replied, row[3] + seconds]


def cost_of(rows: Rows | None, way: str, prices: Mapping[str, tuple[float, float]] | None) -> Cost:
    """Return what a node asked in one way, for all models together.

    Example:
        >>> rows = {("forward", "m"): [1, 1000, 500, 0.1]}
        >>> print(cost_of(rows, "forward", {"m": (1.0, 2.0)}))
        1 call, 1000 + 500 tokens, 0.002000 in money
    """
    if prices is not None:
        check_prices(prices)
    with _LOCK:
        found = {model: (*row,) for (of, model), row in (rows or {}).items() if of == way}
    money = None
    if prices is not None and found.keys() <= prices.keys():
        money = sum((row[1] * prices[model][0] + row[2] * prices[model][1]) / 1e6 for model, row in found.items())
    calls, said, replied, seconds = (sum(row[place] for row in found.values()) for place in range(4))
    return Cost(
        calls=int(calls), input_tokens=int(said), output_tokens=int(replied), seconds=float(seconds), money=money
    )


def check_prices(prices: Mapping[str, tuple[float, float]]) -> None:
    """Refuse what is not a price table.

    Example:
        >>> check_prices({"m": 2.0})
        Traceback (most recent call last):
        ...
        TypeError: the price of 'm' is a pair, that of a million tokens of messages and of replies, not 2.0
    """
    if not isinstance(prices, Mapping):
        raise TypeError(f"prices map the name of a model to its prices, {{'name': (1.0, 2.0)}}; not {prices!r}")
    for name, pair in prices.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            what = "is a pair, that of a million tokens of messages and of replies"
            raise TypeError(f"the price of {name!r} {what}, not {pair!r}")
        for price in pair:
            if not isinstance(price, int | float) or isinstance(price, bool):
                raise TypeError(f"the price of {name!r} is a number, not {price!r}")
            if not math.isfinite(price) or price < 0:
                raise ValueError(f"the price of {name!r} is a finite number, 0 or more, not {price!r}")
