"""The CPU time of a process and of all that it started, and whether they sleep: what a limit on an answer counts.

CPU time is the same on a busy machine: a process that waits for a processor spends none. RUSAGE_CHILDREN counts a
process only after it was waited for, so the times of the whole tree are added up, from `/proc`.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: How many times its limit a tree may sleep if other processes use the processors: it may wait for one of them.
PATIENCE = 10
#: The longest time between two looks at a tree, in seconds.
LOOK = 1.0
#: A tree that uses less than this part of a processor only polls: it sleeps.
POLLING = 0.01
_TICK = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class _Process:
    parent: int
    #: R, S, D and so on, of its first thread.
    state: str
    #: Seconds of CPU, of its own threads and of the processes that it has waited for.
    cpu: float


class Clock:
    """Counts what a process and all that it starts spend from now on.

    Args:
        root: the process.
        limit: how many seconds of CPU time they may use, and for how many seconds they may sleep.
        from_inside: whether the thread that looks is one of this process; it is not counted.
    """

    def __init__(self, root: int, limit: float, *, from_inside: bool = False) -> None:
        self._root, self._limit, self._from_inside = root, limit, from_inside
        #: Seconds between two looks.
        self.look = min(LOOK, limit / 4)
        #: Before the first look only the root is read: most answers come earlier, and a search of /proc costs more.
        self._looked, self._last = False, _own_cpu() if from_inside else _cpu(root)
        self._busy = self._all = 0.0
        self.restart()

    def restart(self) -> None:
        """Count from the last look on."""
        self._spent = self._asleep = 0.0
        #: What was spent when the processes were last seen to compute, and how long ago that is.
        self._computed = self._since = 0.0

    def ran_out(self) -> str:
        """Look at the processes, every `look` seconds; return in words which limit they have passed, or nothing."""
        tree, idle = tree_of(self._root), self._idle()
        own = tree[self._root].cpu if self._root in tree else 0.0
        now = sum(process.cpu for process in tree.values())
        if self._from_inside:
            own, now = _own_cpu(), now - own + _own_cpu()
        # The sum falls when a process ends that nobody waits for; what it has used is counted already.
        self._spent += max(0.0, (now if self._looked else own) - self._last)
        self._looked, self._last = True, now
        if self._spent > self._limit:
            return f"no answer within {self._limit:g} s of CPU time"
        self._since += self.look
        has_computed = self._spent - self._computed > max(POLLING * self._since, 2 / _TICK)
        looking = threading.get_native_id() if self._from_inside else 0
        if has_computed or any(
            _wants_a_processor(number, process, but_for=looking) for number, process in tree.items()
        ):
            self._computed, self._since, self._asleep = self._spent, 0.0, 0.0
        else:
            # Looks are counted, not the time of day: the process that looks may be stopped itself.
            self._asleep += self.look * max(idle, 1 / PATIENCE)
        return f"no answer, and asleep for more than {self._limit:g} s" if self._asleep > self._limit else ""

    def _idle(self) -> float:
        """Return which part of the processors' time was left over since the last look; 0 if that is not known."""
        busy, every, (self._busy, self._all) = self._busy, self._all, _processors()
        return 1 - (self._busy - busy) / (self._all - every) if 0 < every < self._all else 0.0


def keep_orphans() -> None:
    """Become the parent of each process below this one whose own parent ends, so that it stays in the tree."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def may_have_started(root: int) -> bool:
    """Whether a process may have others below it; the kernel says so more cheaply than the list of all processes."""
    with suppress(OSError):
        told = list(Path(f"/proc/{root}/task").glob("*/children"))
        return not told or any(path.read_bytes() for path in told)
    return True


def tree_of(root: int) -> dict[int, _Process]:
    """Return a process and all that it started, directly or not, by number."""
    numbers = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    every = {number: found for number in numbers if (found := _process(number))}
    children = defaultdict[int, list[int]](list)
    for number, process in every.items():
        children[process.parent].append(number)
    tree, rest = dict[int, _Process](), [root]
    while rest:
        if (number := rest.pop()) in every and number not in tree:
            tree[number] = every[number]
            rest += children[number]
    return tree


def _cpu(number: int) -> float:
    process = _process(number)
    return process.cpu if process else 0.0


def _own_cpu() -> float:
    """Return the seconds of CPU of this process but for this thread, and of what it has waited for."""
    waited = os.times()
    return time.process_time() - time.thread_time() + waited.children_user + waited.children_system


def _process(number: int) -> _Process | None:
    with suppress(OSError, ValueError, IndexError):
        state, parent, *rest = _fields(f"/proc/{number}/stat")
        return _Process(int(parent), state.decode(), sum(map(int, rest[9:13])) / _TICK)
    return None


def _fields(path: str) -> list[bytes]:
    """Return what stands behind the name of the program, which may hold anything: proc_pid_stat(5)."""
    return Path(path).read_bytes().rpartition(b")")[2].split()


def _wants_a_processor(number: int, process: _Process, *, but_for: int = 0) -> bool:
    """Whether a thread of a process computes, waits for a processor (R), or for a disk (D); one is not asked."""
    if process.state in "RD":
        return True
    with suppress(OSError, IndexError):
        threads = [thread for thread in Path(f"/proc/{number}/task").iterdir() if thread.name != str(but_for)]
        return any(_fields(f"{thread}/stat")[0] in (b"R", b"D") for thread in threads)
    return False


def _processors() -> tuple[float, float]:
    """Return how long the processors were busy, and how long there were any, in ticks."""
    with suppress(OSError, ValueError, IndexError):
        times = [int(word) for word in Path("/proc/stat").read_bytes().partition(b"\n")[0].split()[1:9]]
        return float(sum(times) - times[3] - times[4]), float(sum(times))
    return 0.0, 0.0
