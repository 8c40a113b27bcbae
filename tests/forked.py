"""Runs `python WORDS`, each time in a process of its own that need not import everything anew.

A server imports modules once, and forks for each command: what a command does to its process ends with it, as it does
in `subprocess.run`. The fork differs in two ways: the modules are there already, and Python's start is over; at its end
they are not taken to pieces. So what a test says of imports, of the garbage collector, of finalizers, or of Python's
own options (`PYTHONUTF8`, `PYTHONWARNINGS`), it says of a process from the start.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Server:
    """A process that has imported some modules, and forks for each command.

    Args:
        modules: what it imports.
        env: what its environment has beside this one; a command may have another.
    """

    def __init__(self, *modules: str, **env: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **env},
            bufsize=0,
        )
        #: What the server has said, and nobody has read yet.
        self._said = b""
        atexit.register(self.close)

    def run(
        self,
        words: Sequence[object],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        stdout: str | Path | None = None,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run `python` with these words, the first of which is `-m`, `-c` or a script, and return what came of it.

        Args:
            words: as on a command line.
            cwd: where; here by default.
            env: the whole environment; this process's by default.
            stdout: a file that takes the output; by default, what is returned has it.
            timeout: in seconds.

        Raises:
            subprocess.TimeoutExpired: it did not end in time, and was killed.
        """
        with tempfile.TemporaryDirectory() as folder:
            nothing, out, err = (Path(folder, name) for name in ("in", "out", "err"))
            command = [str(word) for word in words]
            order = {
                "words": command,
                "cwd": str(Path(cwd or "").resolve()),
                "env": dict(os.environ if env is None else env),
                "streams": [str(nothing), str(stdout or out), str(err)],
            }
            assert self._process.stdin is not None
            self._process.stdin.write(f"{json.dumps(order)}\n".encode())
            number = self._answer()
            try:
                code = self._answer(timeout)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
                self._answer()
                raise subprocess.TimeoutExpired(command, timeout) from None
            said = "" if stdout else out.read_text("utf-8")
            return subprocess.CompletedProcess(command, code, said, err.read_text("utf-8"))

    def close(self) -> None:
        """End the server, if it is one of this process."""
        if self._process.poll() is None:
            self._process.communicate()

    def _answer(self, timeout: float | None = None) -> int:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._said:
            if not select.select([pipe], [], [], timeout)[0]:
                raise TimeoutError
            more = os.read(pipe, 1 << 10)
            assert more, "the server has ended: its last words are on stderr"
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return int(line)


@cache
def server(*modules: str, **env: str) -> Server:
    """Return the server of these modules; the first call starts it."""
    return Server(*modules, **env)


#: What a command of gradspec and a run of pytest import in any case.
COMMAND_LINE = (
    "gradspec._record",
    "gradspec._engine._verify",
    "gradspec.cli",
    "gradspec.functions",
    "gradspec.nn",
    "gradspec._registry._registry",
    "gradspec.render",
    "pytest",
    "rich.progress",
    "rich.table",
    "torch",
    "warm_compiler",
    "warm_sources",
)


#: Leaves out the plugins of others, which take seconds to import; ours is found by its entry point, as ever.
OTHERS = ("anyio", "hypothesispytest", "xdist", "xdist.looponfail")
OURS_ALONE = tuple(word for name in OTHERS for word in ("-p", f"no:{name}"))


def python(*words: object, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run `python WORDS` in a fork of a process that has imported torch, pytest and the command line of gradspec."""
    return server(*COMMAND_LINE).run(words, **how)


def _serve() -> dict[str, Any]:
    """Fork for each command; return the command in the child, and never in the server."""
    while line := _line():
        number = os.fork()
        if not number:
            return dict(json.loads(line))
        os.write(1, f"{number}\n".encode())
        os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])}\n".encode())
    sys.exit()


def _line() -> bytes:
    # Not through `sys.stdin`, whose buffer a child would inherit.
    read = b""
    while not read.endswith(b"\n") and (some := os.read(0, 1 << 16)):
        read += some
    return read


def _end(run: Callable[[dict[str, Any]], None], order: dict[str, Any]) -> None:
    """Run, and end as Python does, but for taking to pieces what was imported: it would be copied into each fork."""
    code: Any = 0
    try:
        run(order)
    except KeyboardInterrupt:
        raise  # Python ends by the signal
    except SystemExit as ended:
        code = ended.code
        if not isinstance(code, int | None):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code or 0)


def _become(order: dict[str, Any]) -> None:
    """Be the process that `python WORDS` would have been."""
    for number, name in enumerate(order["streams"]):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    first, *words = order["words"]
    here = {"-c": "", "-m": os.getcwd()}.get(first)  # noqa: PTH109 - as Python has it
    path = [name for name in os.environ.get("PYTHONPATH", "").split(os.pathsep) if name]
    sys.path[:] = [str(Path(first).parent.resolve()) if here is None else here, *path, *sys.path]
    importlib.invalidate_caches()
    if here is None:
        sys.argv[:] = [first, *words]
        runpy.run_path(first, run_name="__main__")
    elif first == "-m":
        sys.argv[:] = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = [first, *words[1:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(words[0], vars(main))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    importlib.import_module("huge_pages").collapse()
    del sys.path[0]  # the folder of this file
    gc.freeze()  # a search for cycles would copy into each fork whatever it touches
    _end(_become, _serve())
