"""Calls in the order in which they came, each let in as soon as the most that it can cost is left."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

#: The queues that a call is in flight of here; what it calls in turn must not wait for it.
_INSIDE: ContextVar[frozenset[int]] = ContextVar("gradspec.text.lm.inside", default=frozenset())


class LaterError(Exception):
    """A call does not fit now, and may fit once a call in flight has ended."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What one call may cost at most, taken from the budget until the call is settled."""

    tokens: int


class Queue:
    """The calls in flight in this process, and those that wait for them.

    Args:
        take: `take(most, in_flight)` takes a call and its tokens, raises `LaterError`, or raises what refuses the call.
    """

    def __init__(self, take: Callable[[int, int], None]) -> None:
        self._take = take
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        # Reentrant: a generator that the garbage collector closes settles its call wherever a thread stands.
        self._lock = threading.RLock()
        self._in_flight = 0
        self._waiting: deque[tuple[int, Future[Reservation]]] = deque()

    def enter(self, most: int) -> Future[Reservation]:
        """Return a place: a reservation, or what becomes one, or the error that refuses the call."""
        place: Future[Reservation] = Future()
        with self._here():
            if id(self) in _INSIDE.get():  # the call around this one ends only after it: none in flight is waited for
                self._take(most, 0)
                self._in_flight += most
                place.set_result(Reservation(tokens=most))
                return place
            self._waiting.append((most, place))
            self._let_in()
        return place

    def leave(self, place: Future[Reservation], give_back: Callable[[Reservation], None]) -> None:
        """Give a place up that its owner stopped waiting for; `give_back` is told of a reservation that it had."""
        with self._here():
            if not place.done():
                self._waiting = deque(pair for pair in self._waiting if pair[1] is not place)
                self._let_in()
            elif place.exception() is None:
                self.end(place.result(), lambda: give_back(place.result()))

    def end(self, reservation: Reservation, settle: Callable[[], None]) -> None:
        """Settle a call in flight, and let in who fits then."""
        with self._here():
            self._in_flight -= reservation.tokens
            try:
                settle()
            finally:
                self._let_in()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Make a call that has a reservation; none that is made in the block waits."""
        token = _INSIDE.set(_INSIDE.get() | {id(self)})
        try:
            yield
        finally:
            _INSIDE.reset(token)

    def _let_in(self) -> None:
        while self._waiting:
            most, place = self._waiting[0]
            try:
                self._take(most, self._in_flight)
            except LaterError:
                return
            except BaseException as error:
                self._waiting.popleft()
                place.set_exception(error)
            else:
                self._waiting.popleft()
                self._in_flight += most
                place.set_result(Reservation(tokens=most))

    def _here(self) -> threading.RLock:
        """Return the lock; a fork has none of the calls in flight."""
        if self._process != os.getpid():
            self._begin()
        return self._lock
