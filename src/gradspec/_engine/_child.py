"""A child process that runs checks one after another: a crash or a hang ends the child, and nothing else.

The child is forked, so that specs made of lambdas need not be pickled; only verdicts travel. It computes on one thread:
torch's pool of threads does not survive a fork. A limit on an answer counts CPU time (see `_clock`).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import IO, Any, Generic, TypeVar

from gradspec._clock import Clock, may_have_started, tree_of
from gradspec._engine._autograd import children_take_gradients
from gradspec._engine._fork import quiet_moment
from gradspec._engine._home import at_home
from gradspec._engine._no_answer import died, ran_out, read
from gradspec._engine._serving import UNSENT, _ends, _serve
from gradspec._engine._turn import measuring
from gradspec._engine._wire import ForeignError, Frame
from gradspec._heartbeat import Heartbeat
from gradspec.law import Finding, Status

Question = TypeVar("Question")
Answer = TypeVar("Answer")

#: How many seconds a child that has closed its pipe may take to end; a busy machine is slow.
GRACE = 60


def available(device: str = "cpu") -> bool:
    """Whether checks on a device can run in a child here: there is fork, and neither CUDA nor autograd refuses it."""
    import torch

    if multiprocessing.current_process().daemon:  # Python lets such a one have no children
        return False
    initialised = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch's own
    if not sys.platform.startswith("linux") or device.startswith("cuda") or initialised:
        return False
    return children_take_gradients()


class Child(Generic[Question, Answer]):
    """Runs a function in a child process, call by call, and survives what it does there.

    Args:
        run: what the child does with a question; questions and answers travel as pickles.
        time_limit: how many seconds of CPU time one answer may take, in all processes that the child starts together.
        per_call: let each call of the function that the answer takes have that limit: see `gradspec._heartbeat`.
        silent: drop what the child prints; it goes to stderr otherwise.
    """

    def __init__(
        self, run: Callable[[Question], Answer], *, time_limit: float, per_call: bool = False, silent: bool = False
    ) -> None:
        self._run = run
        self._silent = silent
        self._time_limit = time_limit
        self._heartbeat, self._per_call = Heartbeat(), per_call
        self._process: Any = None
        self._pipe: Connection | None = None
        #: Closed as this process ends, however it does; the child ends then too.
        self._life: Connection | None = None
        #: The number of the last question, and whether the child that lives was asked one.
        self._number, self._asked = 0, False
        #: A descriptor that can be read once the child has ended.
        self._end = -1
        #: Where Python writes the stack of a crash.
        self._stack: IO[bytes] | None = None

    def ask(self, question: Question) -> Answer | Finding:
        """Return the answer of `run(question)`, or the finding that the child died or did not answer in time."""
        if self._pipe is not None and self._pipe.poll():
            self.close()  # something that an earlier question left behind writes to the pipe, or has ended the child
        self.start()
        first, self._asked = not self._asked, True
        try:
            return self._answer(question)
        except ForeignError as error:
            self.close()
            if not first:  # it may be what an earlier question left behind: ask again where none was asked before
                return self.ask(question)
            return Finding(
                status=Status.ERROR,
                message=f"on the pipe of the answers came {error}",
                likely="the function, or what it starts, writes to descriptors that it did not open, or closes them",
            )

    def _answer(self, question: Question) -> Answer | Finding:
        assert self._pipe is not None
        self._number += 1
        self._heartbeat.has_found = False
        frame, clock = Frame(self._number, self._process.pid), Clock(self._process.pid, self._time_limit)
        calls = self._calls()
        try:
            self._pipe.send((self._number, question))
            while True:
                ended = wait([self._pipe, self._end], clock.look)
                if not ended:
                    if (now := self._calls()) != calls:
                        calls = now
                        clock.restart()
                    if not (passed := clock.ran_out()):
                        continue
                    self.close()
                    return ran_out(passed)
                if self._pipe not in ended:
                    return self._exit_finding()  # its pipe may live on, in a child of its own
                if (come := frame.read(self._pipe.fileno())) is not None:
                    answer: Answer | Finding = read(come)
                    return answer
        except (EOFError, ConnectionError):
            if not wait([self._end], GRACE):
                raise ForeignError("its end, while the child lives") from None
            return self._exit_finding()

    def _calls(self) -> int:
        return self._heartbeat.count if self._per_call else 0

    @property
    def has_found(self) -> bool:
        """Whether the last question ended after a law had found something, while its cause was looked for."""
        return self._heartbeat.has_found

    def close(self) -> None:
        """End the child, if there is one; the next question starts another."""
        if self._process is None:
            return
        self._reap()

    def __enter__(self) -> Child[Question, Answer]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Fork the child, if there is none that lives."""
        if self._process is None or not self._process.is_alive():
            self.close()
            at_home(self._fork)

    def _fork(self) -> None:
        fork = multiprocessing.get_context("fork")
        with measuring(), quiet_moment(), warnings.catch_warnings():
            # Python warns of a fork beside threads; the child takes none of their locks: see `_serve`.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pipe, theirs = fork.Pipe()
            life, self._life = fork.Pipe(duplex=False)
            _ends.update((self._pipe, self._life))
            self._stack = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
            # daemon=False: a compiler in the child may want children of its own.
            how = (theirs, life, self._stack, self._silent, self._heartbeat, self._run)
            process = fork.Process(target=_serve, args=how, daemon=False)
            process.start()
            assert process.pid is not None
            self._process, self._end, self._asked = process, os.pidfd_open(process.pid), False
            theirs.close()
            life.close()

    def _reap(self) -> tuple[int, str]:
        """End the child and all that it started; return its exit code and the stack that it left."""
        process, pipe, life, stack, end = self._process, self._pipe, self._life, self._stack, self._end
        assert pipe is not None
        assert life is not None
        assert stack is not None
        self._process, self._pipe, self._life, self._stack, self._end = None, None, None, None, -1
        # In process groups of their own too: the child keeps what loses its parent. One that is dead keeps its number.
        for number in tree_of(process.pid) if may_have_started(process.pid) else ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()  # where it has not come to have a group of its own
        process.join()
        until = time.monotonic() + GRACE
        # A thread that starts a process asks after all others first: it may have been told the code, and not noted it.
        while (code := process.exitcode) is None and time.monotonic() < until:
            time.sleep(0.001)
        if code is None:  # somebody has waited for any child, and kept what came
            code = -signal.SIGKILL
        else:
            process.close()
        for mine in (pipe, life):
            _ends.discard(mine)
            mine.close()
        os.close(end)
        with stack:
            stack.seek(0)
            return int(code), stack.read().decode(errors="replace")

    def _exit_finding(self) -> Finding:
        code, stack = self._reap()
        if code == UNSENT:
            raise ForeignError("its end: the child could not send its answer")
        return died(code, stack)
