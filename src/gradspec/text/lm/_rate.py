"""A limit on requests and tokens a minute, shared by everybody who has it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from gradspec.text.lm._budget import most_tokens
from gradspec.text.lm._request import Request

MINUTE = 60.0


class RateLimit:
    """At most so many requests, and so many tokens, in any minute.

    A call that does not fit waits until it does, in threads, tasks and clients that share the limit; it never fails for
    it, unless its deadline would pass first. A request counts with the most tokens that it can cost, if its options
    bound that, and else with the bytes that it sends; one that is above the limit by itself waits for an empty minute.

    Args:
        requests: Requests in a minute; None for no limit.
        tokens: Tokens in a minute; None for no limit.
        clock: What tells the time in seconds.

    Examples:
        >>> from gradspec.text.lm import Client, RuleModel
        >>> client = Client(RuleModel({}, default="yes"), rate=RateLimit(requests=100))
        >>> client("Do you hear me?").text
        'yes'
    """

    def __init__(
        self,
        *,
        requests: int | None = None,
        tokens: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, limit in (("requests", requests), ("tokens", tokens)):
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
                raise ValueError(f"a limit on {name} a minute is a whole number, 1 or more, not {limit!r}")
        self._requests, self._tokens, self._clock = requests, tokens, clock
        self._lock = threading.Lock()
        #: When each call of the last minute was made, and its tokens.
        self._made: deque[tuple[float, int]] = deque()
        self._sum = 0

    def __repr__(self) -> str:
        return f"RateLimit(requests={self._requests}, tokens={self._tokens})"

    def take(self, request: Request) -> float:
        """Take a place for a call and return 0, or return the seconds to wait before asking again."""
        tokens = 0 if self._tokens is None else min(self._tokens, _tokens(request))
        with self._lock:
            now = self._clock()
            while self._made and self._made[0][0] <= now - MINUTE:
                self._sum -= self._made.popleft()[1]
            free = now
            if self._requests is not None and len(self._made) >= self._requests:
                free = self._made[len(self._made) - self._requests][0] + MINUTE
            if self._tokens is not None and self._sum + tokens > self._tokens:
                free = max(free, self._when_free(self._sum + tokens - self._tokens) + MINUTE)
            if free <= now:
                self._made.append((now, tokens))
                self._sum += tokens
                return 0.0
            return free - now

    def _when_free(self, excess: int) -> float:
        """Return when the call was made with whose end so many tokens are free again."""
        for made, tokens in self._made:
            excess -= tokens
            if excess <= 0:
                return made
        return self._clock()  # cannot be: no call counts more than the limit


def _tokens(request: Request) -> int:
    try:
        return most_tokens(request)
    except ValueError:  # the options do not bound the reply
        return sum(len(m.content.encode("utf-8", "surrogatepass")) for m in request.messages)
