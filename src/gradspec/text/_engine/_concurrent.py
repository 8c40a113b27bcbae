"""The backward pass with several calls in flight."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from gradspec.text._data import holds_itself
from gradspec.text._engine import _pass
from gradspec.text._engine._deferred import Deferred, calls_deferred
from gradspec.text._engine._node import CallNode
from gradspec.text._engine._pass import Pass
from gradspec.text._scheduling._pending import no_stop
from gradspec.text._scheduling._position import branches
from gradspec.text._scheduling._run_sync import run_sync
from gradspec.text._scheduling._stop import STOP, Stop

if TYPE_CHECKING:
    from gradspec.text._graph._variable import Variable

T = TypeVar("T")
Given: TypeAlias = "tuple[Variable | None, ...]"


async def run(current: Pass, limit: int) -> None:
    """Run a pass with up to `limit` calls at once.

    Only this coroutine keeps the books; what it starts are calls of the users' code. A node that waits for nothing
    runs right here. Who finishes first has no say: gradients are merged in the order of the graph.
    """
    calls = Calls(limit)
    try:
        with current.running():
            while True:
                for node, given in current.ready_nodes():  # it enters each; the tasks that are started have that
                    function = node._function
                    if function.io_bound or function._is_async:
                        calls.start(node, given, Deferred(function.backward, (node, *node._filled(given))))
                        continue
                    returned = function.backward(node, *node._filled(given))
                    if _deferred_in(returned, node):
                        calls.start(node, given, returned)
                    else:
                        current.deliver(node, node._after(returned, given))
                if not calls.pending:
                    break
                node, given, returned = await calls.next()
                current.enter(node)
                current.deliver(node, node._after(returned, given))
    except Exception:
        await calls.stop()  # what runs is waited for: no code of the user's runs on behind this line
        raise
    finally:
        calls.abandon()


def run_up_to(limit: int, current: Pass) -> None:
    """Run a pass from plain code, on an event loop only if it needs one."""
    if limit == 1 and not current.is_async:
        _pass.run(current)
    else:
        run_sync(run(current, limit))


class Calls:
    """The calls in flight of one pass, each in a thread of its own, or on the loop if it is async."""

    def __init__(self, limit: int) -> None:
        self.pending = 0
        self._free = asyncio.Semaphore(limit)
        self._stop = Stop()
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix="gradspec.text")
        self._tasks: set[asyncio.Task[Any]] = set()
        self._finished: asyncio.Queue[tuple[CallNode, Given, asyncio.Task[Any]]] = asyncio.Queue()

    def start(self, node: CallNode, given: Given, returned: Any) -> None:
        """Start the calls in what the backward of a node returned, or that backward itself."""
        self.pending += 1
        task = self._task(self._resolved(returned))
        task.add_done_callback(lambda task: self._finished.put_nowait((node, given, task)))

    async def next(self) -> tuple[CallNode, Given, Any]:
        """Return the next node whose calls are all done, and what its backward returned; raise what it raised."""
        node, given, task = await self._finished.get()
        self.pending -= 1
        try:
            return node, given, task.result()
        finally:
            del task  # its error would hold this frame, and this frame the task

    async def stop(self) -> None:
        """Cancel what has not started, and wait for the rest."""
        self._cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)

    def abandon(self) -> None:
        """Cancel what there is and wait for nothing; what a thread still returns is dropped, and it asks no model."""
        self._cancel()
        self._stop.now()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the pass raises the first error; asyncio would print each other one as never retrieved

    async def _call(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        async with self._free:
            if inspect.iscoroutinefunction(call):
                return await call(*args, **kwargs)
            context = copy_context()
            context.run(STOP.set, self._stop)
            run = asyncio.get_running_loop().run_in_executor
            result = await run(self._threads, lambda: context.run(no_stop, call, *args, **kwargs))
            return await result if inspect.isawaitable(result) else result

    async def _resolved(self, value: Any, above: tuple[int, ...] = ()) -> Any:
        """Make the calls in what a backward returned, all at once, and put their results in their places."""
        if isinstance(value, Deferred):
            args = await self._resolved(value.args)
            return await self._resolved(await self._call(value.call, *args, **value.kwargs))
        if id(value) in above:
            raise holds_itself("what a backward returned")
        if not calls_deferred(value):
            return value
        results = [*(value.values() if isinstance(value, dict) else value)]
        inside = (*above, id(value))
        due = [at for at, item in enumerate(results) if calls_deferred(item)]
        places = branches(len(results))
        if len(due) == 1:  # a task of its own for each level of a nested list would cost more than the engine
            with places[due[0]]:
                results[due[0]] = await self._resolved(results[due[0]], inside)
        else:
            tasks = []
            for at in due:
                with places[at]:
                    tasks.append(self._task(self._resolved(results[at], inside)))
            for at, result in zip(due, await asyncio.gather(*tasks), strict=True):
                results[at] = result
        return dict(zip(value, results, strict=True)) if isinstance(value, dict) else type(value)(results)


def _deferred_in(returned: Any, node: CallNode) -> bool:
    try:
        return calls_deferred(returned)
    except RecursionError:
        raise holds_itself(f"what {node._function.__name__} returned") from None
