"""A hard limit on calls and tokens: each call reserves the most it can cost before it is made."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from gradspec.text.lm._errors import BudgetError
from gradspec.text.lm._model import Usage
from gradspec.text.lm._request import Request, canonical

#: Tokens that a chat template may add to a request, and to each of its messages.
TEMPLATE_TOKENS = 64
MESSAGE_TOKENS = 16


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What one call may cost at most, taken from the budget until the call is settled."""

    tokens: int


class Budget:
    """A hard limit on calls and tokens, exact however many calls run at once.

    A call reserves itself, and the most tokens that it can cost, before it is made; if they are not left, it is not
    made and `BudgetError` is raised. When the reply is there, its true usage takes the place of the reservation. Each
    attempt counts as a call. A call that failed without a reply keeps its tokens reserved, since it may have been paid;
    one that the server refused with an error status gives them back.

    No token is shorter than a byte, so a request costs at most its UTF-8 bytes and what the chat template adds; the
    reply costs at most `max_tokens` or `max_completion_tokens`, one of which a limit on tokens therefore needs.

    Args:
        calls: Calls at most; None for no limit.
        tokens: Tokens at most, of requests and replies; None for no limit.

    Examples:
        >>> from gradspec.text.lm import Client, RuleModel
        >>> budget = Budget(calls=1)
        >>> client = Client(RuleModel({"capital of France": "Paris"}), budget=budget)
        >>> client("What is the capital of France?").text
        'Paris'
        >>> client("And what is the capital of France?")
        Traceback (most recent call last):
        ...
        gradspec.text.lm._errors.BudgetError: 1 of 1 calls are made; raise Budget(calls=...) to go on
        >>> budget.calls, budget.tokens
        (1, 7)
    """

    def __init__(self, *, calls: int | None = None, tokens: int | None = None) -> None:
        for name, limit in (("calls", calls), ("tokens", tokens)):
            if limit is not None and limit < 0:
                raise ValueError(f"a limit on {name} is at least 0, not {limit}")
        self._limits = (calls, tokens)
        self._lock = threading.Lock()
        self._calls = self._spent = self._reserved = 0

    def __repr__(self) -> str:
        calls, tokens = self._limits
        return f"Budget(calls={self.calls} of {calls}, tokens={self.tokens} of {tokens})"

    @property
    def calls(self) -> int:
        """The calls made."""
        return self._calls

    @property
    def tokens(self) -> int:
        """The tokens spent or reserved."""
        return self._spent + self._reserved

    def reserve(self, request: Request) -> Reservation:
        """Take one call and the most that it can cost, or raise `BudgetError` and take nothing."""
        calls, tokens = self._limits
        most = 0 if tokens is None else most_tokens(request)
        with self._lock:
            if calls is not None and self._calls >= calls:
                raise BudgetError(f"{self._calls} of {calls} calls are made; raise Budget(calls=...) to go on")
            if tokens is not None and self.tokens + most > tokens:
                raise BudgetError(
                    f"the next call may cost {most} tokens, and {tokens - self.tokens} of {tokens} are left; "
                    "lower max_tokens, shorten the messages or raise Budget(tokens=...)"
                )
            self._calls += 1
            self._reserved += most
        return Reservation(tokens=most)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Put the true usage in the place of a reservation; without one the reservation counts as spent."""
        with self._lock:
            self._reserved -= reservation.tokens
            self._spent += reservation.tokens if usage is None else usage.total


def most_tokens(request: Request) -> int:
    """Return an upper bound of the tokens that a request and its reply cost."""
    limits = [request.options.get(name) for name in ("max_completion_tokens", "max_tokens")]
    limit = next((n for n in limits if n is not None), None)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise ValueError("a limit on tokens needs the option max_tokens or max_completion_tokens, to bound the reply")
    said = sum(len(m.content.encode("utf-8", "surrogatepass")) + MESSAGE_TOKENS for m in request.messages)
    beside = len(canonical([request.options, request.schema]))
    return TEMPLATE_TOKENS + said + beside + limit
