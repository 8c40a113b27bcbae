"""Collect the output of the code under test, and print it on stderr after the run, each line once.

Every law calls the function several times, most of them in a child process. A function that prints would fill the
terminal before the report.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from gradspec._one_line import for_log, visible

#: How many different lines are shown.
SHOWN = 10
_STDERR = 2


@contextlib.contextmanager
def printed_once() -> Iterator[None]:
    """Keep what is printed to stdout here, and what children print, and write it to stderr at the end."""
    with tempfile.TemporaryFile() as file:
        stream = _writing_to(file.fileno())
        try:
            with contextlib.redirect_stdout(stream), _children_print_to(file.fileno()):
                yield
        finally:
            stream.close()
            file.seek(0)
            for line in (
                () if sys.stderr is None else shortened(raw.decode(errors="replace").rstrip("\n") for raw in file)
            ):
                sys.stderr.write(f"{for_log(visible(line))}\n")


def shortened(lines: Iterable[str]) -> Iterator[str]:
    """Yield each line once, with how often it was printed; of many different ones the first, and how many follow."""
    times: dict[str, int] = {}
    more = 0
    for line in lines:
        if line in times or len(times) < SHOWN:
            times[line] = times.get(line, 0) + 1
        else:
            more += 1
    for line, count in times.items():
        yield line if count == 1 else f"{line} (printed {count} times)"
    if more:
        yield f"and {more} more line{'s' * (more != 1)}"


@contextlib.contextmanager
def _children_print_to(descriptor: int) -> Iterator[None]:
    """Let children, which print to the stderr that they inherit, print to a file; messages of this process do not."""
    if sys.stderr is None:  # it is closed, and the number may be that of another file
        yield
        return
    own = os.dup(_STDERR)
    stderr = _writing_to(own)
    is_ours = sys.stderr is sys.__stderr__  # and not what a test has put there
    sys.stderr.flush()
    os.dup2(descriptor, _STDERR)
    try:
        with contextlib.redirect_stderr(stderr) if is_ours else contextlib.nullcontext():
            yield
    finally:
        os.dup2(own, _STDERR)
        stderr.close()
        os.close(own)


def _writing_to(descriptor: int) -> IO[str]:
    """Return a stream to a copy of a descriptor, line by line: a child would inherit what waits in a longer buffer."""
    return os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace", buffering=1)
