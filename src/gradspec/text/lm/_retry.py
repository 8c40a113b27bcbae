"""When to call again, and after how long."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gradspec.text.lm._errors import ModelError, is_retryable

_jitter = random.Random()  # its own generator: a user's seed is not touched


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How often a call that failed for a passing reason is made again, and after how long.

    Passing reasons are a refused, reset or cut connection, a timeout, and the statuses 408, 409, 429 and 5xx. Anything
    else fails at once. The n-th wait is `first_delay * 2**(n - 1)`, at most `max_delay`, less a random part of up to
    `jitter` of it, and never shorter than the server's Retry-After.

    Examples:
        >>> policy = Retry(first_delay=1.0, max_delay=5.0, jitter=0.0)
        >>> [policy.wait(n, TimeoutError()) for n in (1, 2, 3, 4)]
        [1.0, 2.0, 4.0, None]
        >>> policy.wait(1, ValueError("no passing reason")) is None
        True
    """

    #: Calls at most, the first included.
    attempts: int = 4
    #: Seconds of the first wait.
    first_delay: float = 0.5
    #: Seconds of the longest wait. A server that asks for more is not waited for: its error is raised.
    max_delay: float = 60.0
    #: The part of a wait that is random, from 0 to 1.
    jitter: float = 0.25
    #: Seconds that a request may take in all, waits included; None for no limit. A call under way is cut short where
    #: the model heeds it, as `OpenAIModel` does; a plain function runs to its end, and is not called again.
    deadline: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or self.attempts < 1:
            raise ValueError(f"attempts counts the first call too, so it is at least 1, not {self.attempts!r}")
        if not 0.0 <= self.jitter <= 1.0:
            raise ValueError(f"jitter is a part of the wait, from 0 to 1, not {self.jitter}")
        if not 0.0 <= self.first_delay <= self.max_delay:
            raise ValueError(f"0 <= first_delay <= max_delay is needed, not {self.first_delay} and {self.max_delay}")
        if self.deadline is not None and self.deadline <= 0:
            raise ValueError(f"deadline is a number of seconds above 0, not {self.deadline}")

    def wait(self, attempt: int, error: BaseException) -> float | None:
        """Return the seconds to wait after the `attempt`-th call raised `error`; None to give up."""
        if attempt >= self.attempts or not is_retryable(error):
            return None
        asked = (error.retry_after or 0.0) if isinstance(error, ModelError) else 0.0
        if asked > self.max_delay:
            return None
        delay = min(self.max_delay, self.first_delay * 2.0 ** min(attempt - 1, 64))
        return max(asked, delay * (1.0 - self.jitter * _jitter.random()))
