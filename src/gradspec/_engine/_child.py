"""A child process that runs checks one after another: a crash or a hang ends the child, and nothing else.

The child is forked, so that specs made of lambdas need not be pickled; only verdicts travel. It computes on one thread:
torch's pool of threads does not survive a fork.
"""

from __future__ import annotations

import faulthandler
import math
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from gradspec.law import Finding, Status, broken

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Question = TypeVar("Question")
Answer = TypeVar("Answer")

#: How many seconds longer than its parent a child waits for an answer.
GRACE = 10

#: One fork at a time: a child that was forked between another's pipe and its fork would keep that pipe open, and nobody
#: would see the other die.
_forking = threading.Lock()


def available(device: str = "cpu") -> bool:
    """Whether checks on a device can run in a child here: a fork is at hand, and no accelerator holds it back."""
    import torch

    if multiprocessing.current_process().daemon:  # Python lets such a one have no children
        return False
    initialised = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch's own
    return sys.platform.startswith("linux") and not device.startswith("cuda") and not initialised


class Child(Generic[Question, Answer]):
    """Runs a function in a child process, call by call, and survives what it does there.

    Args:
        run: what the child does with a question; questions and answers travel as pickles.
        seconds: how long one answer may take.
        silent: drop what the child prints; it goes to stderr otherwise.
    """

    def __init__(self, run: Callable[[Question], Answer], *, seconds: float, silent: bool = False) -> None:
        self._run = run
        self._silent = silent
        self._seconds = seconds
        self._process: Any = None
        self._pipe: Connection | None = None
        #: A descriptor that can be read once the child has ended.
        self._end = -1
        #: Where Python writes the stack of a crash.
        self._stack: IO[bytes] | None = None

    def ask(self, question: Question) -> Answer | Finding:
        """Return the answer of `run(question)`, or the finding that the child died or did not answer in time."""
        self.start()
        assert self._pipe is not None
        try:
            self._pipe.send(question)
            ended = wait([self._pipe, self._end], self._seconds)
            if ended == [self._end] and not self._pipe.poll():
                return self._exit_finding()  # its pipe may live on, in a child of its own
            if not ended:
                self.close()
                return Finding(
                    status=Status.ERROR,
                    message=f"no answer within {self._seconds:g} s",
                    likely="the function hangs; or the machine is slow, then raise `seconds` in the profile",
                    details={"seconds": self._seconds},
                )
            answer: Answer = self._pipe.recv()
        except (EOFError, ConnectionError):
            return self._exit_finding()
        return answer

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
        if self._process is not None and self._process.is_alive():
            return
        self.close()
        fork = multiprocessing.get_context("fork")
        with _forking, warnings.catch_warnings():
            # Python warns of a fork beside threads; the child takes none of their locks: see `_serve`.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pipe, theirs = fork.Pipe()
            self._stack = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
            # daemon=False: a compiler in the child may want children of its own.
            ends = (theirs, self._pipe, self._stack, self._silent, self._seconds)
            process = fork.Process(target=_serve, args=(*ends, self._run), daemon=False)
            process.start()
            assert process.pid is not None
            self._process, self._end = process, os.pidfd_open(process.pid)
            theirs.close()

    def _reap(self) -> tuple[int, str]:
        """End the child and all that it started; return its exit code and the stack that it left."""
        process, pipe, stack, end = self._process, self._pipe, self._stack, self._end
        assert pipe is not None
        assert stack is not None
        self._process, self._pipe, self._stack, self._end = None, None, None, -1
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # a child that is dead already keeps its number until `join`
        process.kill()  # where it has not come to have a group of its own
        process.join()
        code = int(process.exitcode)
        process.close()
        pipe.close()
        os.close(end)
        with stack:
            stack.seek(0)
            return code, _innermost(stack.read().decode(errors="replace"))

    def _exit_finding(self) -> Finding:
        code, stack = self._reap()
        if code < 0:
            return broken(
                f"the interpreter died of {signal.Signals(-code).name}",
                likely="an operation on memory that is not there: look for .data, data_ptr() and custom kernels",
                details={"stack": stack},
            )
        return broken(f"the function ended the interpreter, with exit code {code}", likely="os._exit() or sys.exit()")


def _serve(
    pipe: Connection,
    parents: Connection,
    stack: IO[bytes],
    silent: bool,
    seconds: float,
    run: Callable[[Any], Any],
) -> None:
    import torch

    _forking.release()  # the parent held it while it forked
    with suppress(OSError):
        os.setpgid(0, 0)  # what the function starts ends with it, and Ctrl-C is the parent's affair
    parents.close()  # or the child would keep its own pipe open, and never see that the parent is gone
    torch.set_num_threads(1)
    faulthandler.enable(stack)
    if silent or not _is_open(2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)  # what a kernel prints must not end up in the report, which the parent writes to its stdout
    # A thread of the parent may have held the locks of its streams while it was forked, and would hold them for ever.
    sys.stdout = sys.stderr = open(os.dup(2), "w", encoding="utf-8", errors="replace", buffering=1)  # noqa: PTH123, SIM115 - a descriptor, and for as long as the child lives
    try:
        while True:
            question = pipe.recv()
            signal.alarm(math.ceil(seconds) + GRACE)  # a parent that was killed can end nobody any more
            pipe.send(run(question))
            signal.alarm(0)
    except (EOFError, ConnectionError, KeyboardInterrupt):
        os._exit(0)  # without the handlers of the parent, which would run twice
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _innermost(text: str) -> str:
    """Return where a crash was: the innermost three calls of a stack of faulthandler, files without their folders."""
    frames = re.findall(r'File ".*?([^/"]+)", line (\d+) in (\S+)', text)
    return "\n".join(f"{name}, {file}:{line}" for file, line, name in frames[:3])
