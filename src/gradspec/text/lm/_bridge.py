"""The two crossings between threads and event loops: wait for a coroutine, await a thread."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TypeVar

from gradspec.text._scheduling._pending import no_stop
from gradspec.text._scheduling._stop import STOP
from gradspec.text.lm._deadline import seconds_left
from gradspec.text.lm._errors import ModelTimeoutError

T = TypeVar("T")

#: The threads that wait for plain models; asyncio's own pool has as few as five on a small machine.
WORKERS = 64

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}
_pools: dict[int, ThreadPoolExecutor] = {}


def wait_for(awaitable: Awaitable[T]) -> T:
    """Run an awaitable on the background loop and wait for what it returns; an interrupt or a stop cancels it."""
    future = asyncio.run_coroutine_threadsafe(in_time(awaitable), _loop())
    stop = STOP.get()
    try:
        with nullcontext() if stop is None else stop.cancels(future):
            return future.result()
    except BaseException:
        future.cancel()
        raise


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call in a thread of our own pool, with the caller's context variables, and await it."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pool(), lambda: context.run(no_stop, call))


async def in_time(awaitable: Awaitable[T]) -> T:
    """Await what must be done before the deadline of the call in hand; without one, simply await it."""
    left = seconds_left()
    if left is None:
        return await awaitable
    try:
        async with asyncio.timeout(left) as limit:
            return await awaitable
    except TimeoutError:
        if not limit.expired():
            raise
    raise ModelTimeoutError("the model did not answer before the deadline")


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:  # by process: a fork has the dictionary, but not the thread
        if os.getpid() not in _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="gradspec.text.lm", daemon=True).start()
        return _loops[os.getpid()]


def _pool() -> ThreadPoolExecutor:
    with _lock:
        if os.getpid() not in _pools:
            _pools[os.getpid()] = ThreadPoolExecutor(WORKERS, thread_name_prefix="gradspec.text.lm")
        return _pools[os.getpid()]
