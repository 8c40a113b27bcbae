"""The bridge from plain code to an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar, cast

T = TypeVar("T")


def run_sync(awaitable: Awaitable[T]) -> T:
    """Wait for an awaitable, on an event loop of its own; in a thread of its own where a loop runs here already.

    A notebook runs its cells on a loop, and no second one may run in the same thread.
    """
    # Not inside of an except clause: each error of the awaitable would be shown as one of its handling.
    result, error = _in_thread(awaitable) if loop_runs() else asyncio.run(_outcome(awaitable))
    try:
        if error is not None:
            raise error
        return cast("T", result)
    finally:
        del error  # the error holds this frame


def loop_runs() -> bool:
    """Return whether an event loop runs in this thread, so that whoever waits here holds it up."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _outcome(awaitable: Awaitable[T]) -> tuple[T | None, Exception | None]:
    # A task that raised would hold its error, and the error, by its frames, the task and the whole graph.
    try:
        return await awaitable, None
    except Exception as error:
        return None, error


def _in_thread(awaitable: Awaitable[T]) -> tuple[T | None, Exception | None]:
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def main() -> tuple[T | None, Exception | None]:
        started.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await _outcome(awaitable)

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(copy_context().run, asyncio.run, main())
        try:
            return done.result()
        except BaseException:
            for loop, task in started:
                if task is not None and not done.done():
                    loop.call_soon_threadsafe(task.cancel)
            raise
