"""The side of the child: it answers questions until its parent is gone."""

from __future__ import annotations

import faulthandler
import fcntl
import gc
import io
import logging
import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import IO, Any

from gradspec._clock import keep_orphans
from gradspec._engine._fork import after_fork
from gradspec._engine._own_error import innermost, own_error, own_place
from gradspec._engine._twin import end_where_it_comes_back
from gradspec._engine._wire import send
from gradspec._heartbeat import Heartbeat, take
from gradspec._one_line import visible
from gradspec.law import Finding, Status, raised, shown

#: With what a child ends that cannot send its answer.
UNSENT = 117
#: This process's ends of the pipes of all its children: a child that had them could write to another one, and would
#: keep its own pipe open, and never see that the parent is gone.
_ends: set[Connection] = set()


def _serve(
    pipe: Connection,
    life: Connection,
    stack: IO[bytes],
    silent: bool,
    heartbeat: Heartbeat,
    run: Callable[[Any], Any],
) -> None:
    import torch

    after_fork()
    # What a compiler raises is in the verdict, and torch logs it too, a screen of it.
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    os.register_at_fork(after_in_child=end_where_it_comes_back)
    gc.freeze()  # a search for cycles would copy whatever it touches of what the parent has made
    child = os.getpid()
    with suppress(OSError):
        os.setpgid(0, 0)  # what the function starts ends with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's affair: a law would take it for an error
    while _ends:
        _ends.pop().close()
    end_with_parent(life.fileno())
    keep_orphans()
    take(heartbeat)
    torch.set_num_threads(1)
    faulthandler.enable(stack)
    if silent or not _is_open(2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)  # what a kernel prints must not end up in the report, which the parent writes to its stdout
    # A thread of the parent may have held the locks of its streams while it was forked, and would hold them for ever.
    sys.stdout = sys.stderr = _Visible(
        io.BufferedWriter(io.FileIO(os.dup(2), "w")), encoding="utf-8", errors="replace", line_buffering=True
    )
    try:
        while True:
            number, question = pipe.recv()
            try:
                answer = run(question)
            except Exception as error:  # a law and an audit catch what the function raises
                answer = own_error(error) if own_place(error) else _uncaught(error)
            except BaseException as error:  # also a KeyboardInterrupt: the one of the user comes to the parent
                answer = raised(error)
            finally:
                if os.getpid() != child:  # the function has forked, and this one has come back too
                    os._exit(0)
            _send(pipe.fileno(), number, answer)
    except (EOFError, ConnectionError, KeyboardInterrupt):
        os._exit(0)  # without the handlers of the parent, which would run twice
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def end_with_parent(life: int) -> None:
    """Have the kernel end this group of processes once nobody can write to a pipe any more: its parent was killed.

    A signal does it, and no thread that looks: a kernel that hangs would hold that up too.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgid(0) if os.getpgid(0) == os.getpid() else os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:  # it was killed before this
        os._exit(0)


def _send(descriptor: int, number: int, answer: Any) -> None:
    """Send an answer; where it cannot be pickled, the finding that it cannot."""
    try:
        content = bytes(ForkingPickler.dumps(answer))
    except Exception as error:
        content = pickle.dumps(_not_plain(error))
    try:
        send(descriptor, number, content)
    except OSError:
        os._exit(UNSENT)


def _not_plain(error: Exception) -> Finding:
    return Finding(
        status=Status.ERROR,
        message=f"the answer cannot leave the child process: {shown(error)}",
        likely="a law's finding holds something else than plain data",
    )


def _uncaught(error: Exception) -> Finding:
    return Finding(
        status=Status.ERROR,
        message=f"a call raised {shown(error)}",
        details={"stack": innermost(error)},
    )


class _Visible(io.TextIOWrapper):
    """A stream on which nothing steers the terminal behind it."""

    def write(self, text: str, /) -> int:
        super().write(visible(text))
        return len(text)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
