"""Errors of language models, and which of them a second call may mend."""

from __future__ import annotations


class ModelError(Exception):
    """A call of a language model failed. Says in `retryable` whether the same call may work later."""

    #: Whether the same call may work later.
    retryable = False
    #: Seconds that the server asked to wait before the next call.
    retry_after: float | None = None


class ModelConnectionError(ModelError, ConnectionError):
    """The server refused the connection, reset it, or closed it before the reply was whole."""

    retryable = True


class ModelTimeoutError(ModelError, TimeoutError):
    """The reply did not come in time."""

    retryable = True


class StatusError(ModelError):
    """The server answered with an HTTP status that is an error."""

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.retryable = status in (408, 409, 429) or 500 <= status <= 599


class ReplyError(ModelError):
    """The server answered, but not with a chat completion."""


class SchemaError(ModelError):
    """The reply is not JSON, or not of the schema that was asked for."""

    def __init__(self, message: str, *, text: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.text = text
        self.problems = problems


class BudgetError(ModelError):
    """The next call could exceed the limit on calls or tokens; it was not made."""


class CacheMissError(ModelError, LookupError):
    """Only recorded replies may be used, and there is none for this request."""


class CacheError(ModelError, ValueError):
    """The file of a cache cannot be used: it is damaged, held by another program, or its disk is full."""


class DriftError(ModelError, LookupError):
    """A replay asked something else than was recorded; the message shows the difference."""


def is_retryable(error: BaseException) -> bool:
    """Return whether the same call may work later.

    Examples:
        >>> is_retryable(StatusError("slow down", status=429)), is_retryable(StatusError("who are you?", status=401))
        (True, False)
        >>> is_retryable(ConnectionResetError()), is_retryable(ValueError())
        (True, False)
    """
    if isinstance(error, ModelError):
        return error.retryable
    return isinstance(error, ConnectionError | TimeoutError)
