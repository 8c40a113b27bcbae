"""Deal hands of work to a few players, each a child process of its own: whoever is free takes the next hand."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Protocol, TypeVar


class Player(Protocol):
    """What works in a child process."""

    def start(self) -> None:
        """Fork the child, if there is none that lives."""

    def close(self) -> None:
        """End the child, if there is one."""


AnyPlayer = TypeVar("AnyPlayer", bound=Player)
Item = TypeVar("Item")


def deal(
    hands: Iterable[Sequence[Item]],
    players: Sequence[AnyPlayer],
    play: Callable[[AnyPlayer, Item], None],
    *,
    on: Callable[[], bool] = lambda: True,
) -> int:
    """Have each hand played by one player, its items in order, and close the players.

    Args:
        hands: the work; items of one hand stay together.
        players: not started yet; at least one.
        play: plays one item; the players run in threads of this process, so what it writes must bear that.
        on: asked before each hand but the first; where it says no, no more are played.

    Returns:
        How many hands were left.
    """
    left, stop, lock = deque(hands), threading.Event(), threading.Lock()
    dealt = len(left)

    def take() -> Sequence[Item]:
        with lock:
            return left.popleft() if left and (len(left) == dealt or on()) else ()

    def sit(player: AnyPlayer) -> None:
        while hand := take():
            for item in hand:
                if stop.is_set():
                    return
                play(player, item)

    with ExitStack() as stack:
        # What is entered last ends first: no new item, then the children that threads wait for, then the threads; and
        # then each child that a thread forked meanwhile.
        for player in players:
            stack.callback(player.close)
        pool = stack.enter_context(ThreadPoolExecutor(len(players)))
        for player in players:
            stack.callback(player.close)
        stack.callback(stop.set)
        # Forked here and not in a thread of the pool: a child that is forked elsewhere waits for ever for the lock of a
        # module that this thread is importing, as where a module verifies its specs when it is imported.
        for player in players:
            player.start()
        for running in [pool.submit(sit, player) for player in players]:
            running.result()
    return len(left)


def processors() -> int:
    """Return how many processors this process may use: a container has fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
