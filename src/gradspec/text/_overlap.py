"""How many calls may be in flight at once, and the calls of a forward or an optimizer that may overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_LIMIT: ContextVar[int] = ContextVar("gradspec.text.max_concurrency", default=1)


@contextmanager
def concurrency(limit: int) -> Iterator[None]:
    """Let up to `limit` calls be in flight at once inside a `with` block; without it they follow one another.

    It holds for `backward` and `grad`, for a chat completion of a list, and for the parameters of an optimizer.

    Args:
        limit: At least 1.

    Raises:
        ValueError: the limit is no positive int.

    Example:
        >>> from gradspec.text import concurrency, max_concurrency
        >>> with concurrency(16):
        ...     max_concurrency()
        16
    """
    token = _LIMIT.set(checked_limit(limit))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def max_concurrency() -> int:
    """Return how many calls may be in flight at once here: 1, unless inside `concurrency`."""
    return _LIMIT.get()


def checked_limit(limit: int | None) -> int:
    """Return the limit that holds: the given one, or that of `concurrency`."""
    if limit is None:
        return _LIMIT.get()
    if not isinstance(limit, int) or limit < 1:
        raise ValueError(f"max_concurrency is a positive number of calls, not {limit!r}")
    return limit


def no_stop(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Make a call for a thread that an event loop waits for: of a StopIteration it would wait for ever.

    Example:
        >>> no_stop(next, iter([]))
        Traceback (most recent call last):
        ...
        RuntimeError: the call raised StopIteration
    """
    try:
        return call(*args, **kwargs)
    except StopIteration as error:
        raise RuntimeError("the call raised StopIteration") from error


def overlap(calls: Sequence[Callable[[], T]], limit: int | None = None) -> list[T]:
    """Return what each call returns, in their order; up to the limit run at the same time.

    The first exception is raised, once what was running then has finished; what had not started never does.

    Example:
        >>> overlap([lambda: "a", lambda: "b"], limit=2)
        ['a', 'b']
    """
    workers = min(checked_limit(limit), len(calls))
    if workers <= 1:
        return [call() for call in calls]
    threads = ThreadPoolExecutor(workers, thread_name_prefix="gradspec.text")
    try:
        futures = [threads.submit(copy_context().run, call) for call in calls]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        failed = next((future for future in futures if future in done and future.exception()), None)
        if failed is not None:
            threads.shutdown(wait=True, cancel_futures=True)
            failed.result()
        return [future.result() for future in futures]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
