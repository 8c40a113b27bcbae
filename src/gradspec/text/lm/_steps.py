"""A pipeline written once, driven by a thread or by an event loop.

A pipeline is a generator that yields what it wants done (ask the model, wait, join another call) and is sent what came
of it. Errors are thrown into it, an interrupt or a cancellation too, so that its `finally` blocks run in both worlds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from gradspec.text._scheduling._pending import shielded
from gradspec.text.lm._model import Completion
from gradspec.text.lm._request import Request

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Call the model."""

    request: Request


@dataclass(frozen=True, kw_only=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Join:
    """Wait for what another thread or task is getting."""

    future: Future[Any]
    #: When to stop waiting, by `time.monotonic`.
    until: float | None

    @property
    def seconds(self) -> float | None:
        """The seconds that are left to wait."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())


Steps: TypeAlias = Generator[Ask | Sleep | Join, Any, T]


def drive(steps: Steps[T], ask: Callable[[Request], Completion]) -> T:
    """Run a pipeline in this thread."""

    def do(wanted: Ask | Sleep | Join) -> Any:
        match wanted:
            case Ask(request=request):
                return ask(request)
            case Sleep(seconds=seconds):
                return time.sleep(seconds)
            case Join(future=future):
                return future.result(wanted.seconds)

    result: Any = None
    failed = False
    while True:
        try:
            wanted = steps.throw(result) if failed else steps.send(result)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # a generator's value is untyped in StopIteration
        try:
            result, failed = do(wanted), False
        except BaseException as error:
            result, failed = error, True


async def adrive(steps: Steps[T], ask: Callable[[Request], Coroutine[Any, Any, Completion]]) -> T:
    """Run a pipeline on the running event loop."""

    async def do(wanted: Ask | Sleep | Join) -> Any:
        match wanted:
            case Ask(request=request):
                return await ask(request)
            case Sleep(seconds=seconds):
                return await asyncio.sleep(seconds)
            case Join(future=future):
                return await shielded(future, wanted.seconds)

    result: Any = None
    failed = False
    while True:
        try:
            wanted = steps.throw(result) if failed else steps.send(result)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # a generator's value is untyped in StopIteration
        try:
            result, failed = await do(wanted), False
        except BaseException as error:
            result, failed = error, True
