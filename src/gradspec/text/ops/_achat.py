"""A chat completion from an event loop that is not held up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._overlap import slots, using
from gradspec.text._scheduling._scheduler import Scheduler
from gradspec.text.lm import acomplete, complete
from gradspec.text.ops._chat import chat


async def achat(*args: Any, **options: Any) -> Variable:
    """Return what a model answers, as `chat` does, with the same arguments; await it on an event loop.

    An async model, and one with an `acall` such as `Client`, is awaited on the running loop; any other is called in a
    thread. Inside `concurrency(k)` up to k such calls are in flight, and else as many as there are.
    `gradspec.text.gather` runs several programs at once, with the graph of the sequential program.

    Args:
        *args: The model and the messages.
        **options: As for `chat`.

    Example:
        >>> import asyncio
        >>> from gradspec.text import Variable
        >>> async def model(messages):
        ...     return "PARIS"
        >>> asyncio.run(achat(model, Variable("Capital of France?", role="question"))).data
        'PARIS'
    """
    running = _OnLoop(asyncio.get_running_loop())
    with using(running):
        answer = chat(*args, **options)
    try:
        return await answer.ready()
    except asyncio.CancelledError:
        running.cancel()
        raise


class _OnLoop(Scheduler):
    """Calls that are tasks of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(1, ends=False)
        self._loop, self._slots = loop, slots()
        self._tasks: set[asyncio.Task[None]] = set()

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _submit(self, call: Callable[[], Any], result: Future[Any]) -> None:
        # What the call needs may have come from a thread.
        self._loop.call_soon_threadsafe(self._spawn, call, result, copy_context())

    def _spawn(self, call: Callable[[], Any], result: Future[Any], context: Context) -> None:
        task = self._loop.create_task(self._awaited(call, result), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _awaited(self, call: Callable[[], Any], result: Future[Any]) -> None:
        try:
            async with self._slots:
                if isinstance(call, partial) and call.func is complete:
                    value = await acomplete(*call.args, **call.keywords)
                else:
                    value = await asyncio.to_thread(call)
        except BaseException as error:
            result.set_exception(error)
            if not isinstance(error, Exception):
                raise
        else:
            result.set_result(value)
