"""A hard limit on calls and tokens: each call reserves the most it can cost before it is made."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from gradspec.text.lm._account import Memory
from gradspec.text.lm._errors import BudgetError, CacheError
from gradspec.text.lm._model import Usage
from gradspec.text.lm._queue import LaterError, Queue, Reservation
from gradspec.text.lm._request import Request, canonical

if TYPE_CHECKING:
    from gradspec.text.lm._cache import Cache

#: Tokens that a chat template may add to a request, and to each of its messages.
TEMPLATE_TOKENS = 64
MESSAGE_TOKENS = 16
#: Options that limit a reply. The first two are OpenAI's; servers obey others in their place: llama.cpp the next,
#: Ollama `num_predict`, vLLM `min_tokens`, transformers those with `new`, Gemini the last.
LIMITS = (
    "max_completion_tokens",
    "max_tokens",
    "n_predict",
    "num_predict",
    "min_tokens",
    "max_new_tokens",
    "min_new_tokens",
    "max_output_tokens",
    "maxOutputTokens",
)
#: Options that ask for several replies; the last is llama.cpp's.
COUNTS = ("n", "best_of", "n_cmpl")


class Budget:
    """A hard limit on calls and tokens, exact however many calls run at once.

    A call reserves itself, and the most tokens that it can cost, before it is made. When the reply is there, its true
    usage takes the place of the reservation. A call for which too few tokens are left waits for the calls in flight in
    this process, as long as what they may leave is enough, in the order in which the calls came; else it is not made
    and `BudgetError` is raised. So calls at once complete where calls one after the other do. Each attempt counts as a
    call. A call that failed without a reply keeps its tokens reserved, since it may have been paid;
    one that the server refused with an error status gives them back. A usage that cannot be, a negative or infinite
    one, counts as none: the reservation is spent.

    No token is shorter than a byte, so a request costs at most its UTF-8 bytes and what the chat template adds; the
    reply costs at most `max_tokens` or `max_completion_tokens`, `n` or `best_of` times. A limit on tokens therefore
    needs one of the two. If other limits are given, such as `n_predict`, the largest counts.

    Args:
        calls: Calls at most; None for no limit.
        tokens: Tokens at most, of requests and replies; None for no limit.
        kept: A cache in whose file the spending is kept. A later run goes on from there, and so do others at the same
            time: the limits hold for all of them together. Without one, a budget begins at 0.
        name: Which of several budgets in one file this is.

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

    def __init__(
        self, *, calls: int | None = None, tokens: int | None = None, kept: Cache | None = None, name: str = "default"
    ) -> None:
        for what, limit in (("calls", calls), ("tokens", tokens)):
            if limit is not None and not _is_int(limit):
                raise ValueError(f"a limit on {what} is a whole number, not {limit!r}")
            if limit is not None and limit < 0:
                raise ValueError(f"a limit on {what} is at least 0, not {limit}")
        if kept is not None and not hasattr(kept, "account"):
            raise TypeError(f'kept is such as Cache("spent.sqlite3"), or None; not {kept!r}')
        self._limits = (calls, tokens)
        self._account = Memory() if kept is None else kept.account(name)
        self._queue = Queue(self._take)

    def __repr__(self) -> str:
        calls, tokens = self._limits
        return f"Budget(calls={self.calls} of {calls}, tokens={self.tokens} of {tokens})"

    @property
    def left(self) -> tuple[int | None, int | None]:
        """The calls and the tokens that are left; None for no limit."""
        calls, tokens = (
            None if limit is None else limit - used
            for limit, used in zip(self._limits, self._account.read(), strict=True)
        )
        return calls, tokens

    @property
    def calls(self) -> int:
        """The calls made."""
        return self._account.read()[0]

    @property
    def tokens(self) -> int:
        """The tokens spent or reserved."""
        return self._account.read()[1]

    def reserve(self, request: Request) -> Future[Reservation]:
        """Take one call and the most that it can cost, as soon as calls in flight have left so much.

        Returns:
            The reservation, or where it will be; `BudgetError` instead of it where the call cannot fit.
        """
        return self._queue.enter(0 if self._limits[1] is None else most_tokens(request))

    def withdraw(self, place: Future[Reservation]) -> None:
        """Give up a reservation that no call was made for."""
        self._queue.leave(place, lambda reservation: self._add(-1, -reservation.tokens))

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Put the true usage in the place of a reservation; without one the reservation counts as spent."""
        more = usage.total - reservation.tokens if usage is not None and is_possible(usage) else 0
        self._queue.end(reservation, lambda: self._add(0, more))

    def _add(self, calls: int, tokens: int) -> None:
        if calls or tokens:
            try:
                self._account.add(calls, tokens)
            except CacheError as error:  # the call is made: its reply must not be lost
                warnings.warn(
                    f"what a call cost is not kept; its reservation counts in its place: {error}", stacklevel=2
                )

    def call(self) -> AbstractContextManager[None]:
        """Make a call whose end others may wait for: what it asks of the same budget does not wait."""
        return self._queue.inside()

    def _take(self, most: int, in_flight: int) -> None:
        def allowed(made: int, spent: int) -> None:
            calls, tokens = self._limits
            if calls is not None and made >= calls:
                raise BudgetError(f"{made} of {calls} calls are made; raise Budget(calls=...) to go on")
            if tokens is not None and spent + most > tokens:
                if spent - in_flight + most <= tokens:
                    raise LaterError
                left = f"{tokens - spent}" if spent < tokens else "none"
                raise BudgetError(
                    f"the next call may cost {most} tokens, and {left} of {tokens} are left; "
                    "lower max_tokens, shorten the messages or raise Budget(tokens=...)"
                )

        self._account.add(1, most, allowed)


def is_possible(usage: Usage) -> bool:
    """Return whether a usage is a number of tokens; servers say what they like."""
    return all(_is_int(tokens) and tokens >= 0 for tokens in (usage.prompt_tokens, usage.completion_tokens))


def most_tokens(request: Request) -> int:
    """Return an upper bound of the tokens that a request and its reply cost."""
    return sum(bounds(request))


def bounds(request: Request) -> tuple[int, int]:
    """Return upper bounds of the tokens of a request, and of those of its reply."""
    options = request.options
    if "extra_body" in options:
        raise ValueError("a limit on tokens cannot see into extra_body; pass its entries as options")
    given: list[int] = [limit for name in LIMITS for limit in _said(options, name)]
    if not any(options.get(name) is not None for name in LIMITS[:2]) or not all(map(_is_limit, given)):
        raise ValueError(
            "a limit on tokens needs the option max_tokens or max_completion_tokens, to bound the reply; it and every "
            "other limit, such as n_predict, is a whole number, 0 or more"
        )
    said = sum(len(m.content.encode("utf-8", "surrogatepass")) + MESSAGE_TOKENS for m in request.messages)
    beside = len(canonical([request.options, request.schema]))
    return TEMPLATE_TOKENS + said + beside, max(given) * _replies(options)


def _replies(options: Mapping[str, Any]) -> int:
    """Return how many replies the server writes, those that it does not send too."""
    counts = [count for name in COUNTS for count in _said(options, name)]
    if not all(_is_int(count) and count >= 1 for count in counts):
        raise ValueError(f"a limit on tokens needs {', '.join(COUNTS)} to be whole numbers above 0")
    replies: int = max(counts, default=1)
    return replies


def _said(options: Mapping[str, Any], name: str) -> Iterator[Any]:
    """Yield what options say under a name, in options within options too, as Ollama takes them."""
    for given, value in options.items():
        if given == name and value is not None:
            yield value
        elif isinstance(value, Mapping):
            yield from _said(value, name)


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0  # -1 means no limit to llama.cpp


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
