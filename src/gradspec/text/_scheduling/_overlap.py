"""How many calls may be in flight at once, and the calls of a forward or an optimizer that may overlap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from gradspec.text._scheduling._pending import RUNNING
from gradspec.text._scheduling._position import PLACE, branches
from gradspec.text._scheduling._scheduler import Scheduler

T = TypeVar("T")

_LIMIT: ContextVar[int] = ContextVar("gradspec.text.max_concurrency", default=1)
_SCHEDULER: ContextVar[Scheduler | None] = ContextVar("gradspec.text.scheduler", default=None)
_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, Scheduler] = WeakKeyDictionary()


@contextmanager
def concurrency(limit: int) -> Iterator[None]:
    """Let up to `limit` calls be in flight at once inside a `with` block; without it they follow one another.

    It holds for `backward` and `grad`, for the parameters of an optimizer, and for what asks a model in forward: there
    `chat` and the evaluators return at once, and the program goes on. Data that is not there yet is waited for when it
    is read. At the end of the block everything is there; an error that nobody has read is raised there.

    Args:
        limit: At least 1.

    Raises:
        ValueError: the limit is not a positive int.

    Example:
        >>> from gradspec.text import concurrency, max_concurrency
        >>> with concurrency(16):
        ...     max_concurrency()
        16
    """
    limit = checked_limit(limit)
    scheduler = Scheduler(limit) if limit > 1 else None
    before = _LIMIT.set(limit), _SCHEDULER.set(scheduler)
    try:
        yield
        if scheduler is not None:
            scheduler.finish()
    except BaseException as error:
        if scheduler is not None:
            scheduler.stop(patient=isinstance(error, Exception))
        raise
    finally:
        _LIMIT.reset(before[0])
        _SCHEDULER.reset(before[1])


@contextmanager
def alone() -> Iterator[None]:
    """Make calls one after the other, inside of a call that others overlap with."""
    before = _LIMIT.set(1), _SCHEDULER.set(None)
    try:
        yield
    finally:
        _LIMIT.reset(before[0])
        _SCHEDULER.reset(before[1])


@contextmanager
def using(scheduler: Scheduler) -> Iterator[None]:
    """Have calls run by a scheduler."""
    before = _SCHEDULER.set(scheduler)
    try:
        yield
    finally:
        _SCHEDULER.reset(before)


def slots() -> AbstractAsyncContextManager[Any]:
    """Return what a call on an event loop waits for inside: a place among those of the block, if there is a limit."""
    found = block()
    if found is None or found.limit == 1:
        return nullcontext()
    if found.slots is None:
        found.slots = asyncio.Semaphore(found.limit)
    return found.slots


def block() -> Scheduler | None:
    """Return what runs the calls of the `concurrency` block, if there is one."""
    return _SCHEDULER.get()


def scheduler() -> Scheduler | None:
    """Return what runs calls while the program goes on: that of the block, or of the event loop that runs here."""
    found = _SCHEDULER.get()
    if found is not None or RUNNING.get() is not None:
        return found
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    if loop not in _LOOPS:
        _LOOPS[loop] = Scheduler(1, ends=False)  # one after the other: only the loop is not to be held up
    return _LOOPS[loop]


def max_concurrency() -> int:
    """Return how many calls may be in flight at once here: 1, unless inside `concurrency`."""
    return _LIMIT.get()


def checked_limit(limit: int | None) -> int:
    """Return the limit that holds: the given one, or that of `concurrency`."""
    if limit is None:
        return _LIMIT.get()
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ValueError(f"max_concurrency is a positive number of calls, not {limit!r}")
    return limit


def overlap(calls: Sequence[Callable[[], T]], limit: int | None = None) -> list[T]:
    """Return what each call returns, in their order; up to the limit run at the same time.

    The first exception is raised, once what was running then has finished; what had not started never does.

    Example:
        >>> overlap([lambda: "a", lambda: "b"], limit=2)
        ['a', 'b']
    """
    workers = min(checked_limit(limit), len(calls))
    if workers <= 1 and PLACE.get() is None:
        return [call() for call in calls]
    places = branches(len(calls))
    if workers <= 1:
        return [_made_at(place, call) for place, call in zip(places, calls, strict=True)]
    threads = ThreadPoolExecutor(workers, thread_name_prefix="gradspec.text")
    try:
        futures = []
        for place, call in zip(places, calls, strict=True):
            with place:
                futures.append(threads.submit(copy_context().run, call))
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        failed = next((future for future in futures if future in done and future.exception()), None)
        if failed is not None:
            threads.shutdown(wait=True, cancel_futures=True)
            failed.result()
        return [future.result() for future in futures]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _made_at(place: AbstractContextManager[Any], call: Callable[[], T]) -> T:
    with place:
        return call()
