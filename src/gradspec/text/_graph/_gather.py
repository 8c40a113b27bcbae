"""Programs that run side by side on one event loop, and the graph that they would have built one after the other."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from contextvars import copy_context
from typing import Any, TypeVar

from gradspec.text._engine._node import MADE, Node
from gradspec.text._scheduling._position import branches

T = TypeVar("T")


async def gather(*programs: Awaitable[T]) -> list[T]:
    """Run programs at once, and return what each returns, in their order.

    Unlike with `asyncio.gather`, the order of the graph is that of the arguments, as if each program had run after
    the one before; so the gradients are merged in the same order, however the calls finish. The first error stops the
    others, and is raised once they have ended.

    Args:
        *programs: Coroutines that have not begun.

    Example:
        >>> import asyncio
        >>> from gradspec.text import gather
        >>> from gradspec.text.ops import achat
        >>> async def main():
        ...     async def model(messages):
        ...         return messages[-1].content.upper()
        ...     return await gather(achat(model, "a"), achat(model, "b"))
        >>> [answer.data for answer in asyncio.run(main())]
        ['A', 'B']
    """
    for program in programs:
        if not inspect.isawaitable(program):
            raise TypeError(f"gather takes programs that can be awaited, such as achat(model, prompt), not {program!r}")
    loop = asyncio.get_running_loop()
    made: list[list[Node]] = [[] for _ in programs]
    tasks: list[asyncio.Task[T]] = []
    for place, program, nodes in zip(branches(len(programs)), programs, made, strict=True):
        with place:
            context = copy_context()
        context.run(MADE.set, nodes)
        tasks.append(loop.create_task(_awaited(program), context=context))
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION) if tasks else (set(), set())
        failed = next((task for task in tasks if task in done and not task.cancelled() and task.exception()), None)
        if failed is not None:
            failed.result()
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        _in_order(made)


async def _awaited(program: Awaitable[T]) -> T:
    return await program


def _in_order(made: list[list[Node]]) -> None:
    """Renumber the ranks of all nodes, in the order of the programs."""
    nodes: list[Any] = [node for one in made for node in one]
    ranks = sorted((node._rank for node in nodes), reverse=True)
    for node, rank in zip(nodes, ranks, strict=True):
        node._rank = rank
    outer = MADE.get()
    if outer is not None:
        outer += nodes
