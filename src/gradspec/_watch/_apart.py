"""Audits in processes of their own: forked from the program that saw a function, or new ones that import it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gradspec._searches import fork
from gradspec._watch._environment import FOLDER
from gradspec._watch._handed import HANDED, why_not_handed
from gradspec._watch._store import FUNCTION, PROCESS, REPORT, answered, claims, rows_in
from gradspec._watch._uses import is_asked


def can_fork() -> bool:
    """Whether an audit can run in a fork of this process."""
    import torch

    return hasattr(os, "fork") and not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch's own


#: The file in the folder of a function to which its audit prints.
LOG = "audit.log"


def forked(run: Callable[[], None], place: Path) -> None:
    """Run the audit of a function in a fork."""
    ended(started(run, place), place)


def started(run: Callable[[], None], place: Path) -> int:
    """Begin the audit of a function in a fork, whose output goes to its folder; return its process number.

    The fork computes on one thread: torch's pool of threads does not survive it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: none of them is needed
        child = fork()
    if child == 0:
        code = 1
        try:
            import concurrent.futures.thread as pool

            import torch

            from gradspec._engine._fork import without_cuda

            torch.set_num_threads(1)
            without_cuda()
            pool._shutdown = False  # the program has ended, and this fork of it begins
            os.setpgid(0, 0)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            warnings.resetwarnings()
            warnings.simplefilter("ignore")
            _leave_a_removed_folder()
            _to(place / LOG)
            os.environ.pop(FOLDER, None)  # what it starts is not watched
            with _as_torch_begins():
                run()
            code = 0
        except BaseException as error:  # a program's own exit handlers must not run in a fork of it
            with contextlib.suppress(Exception):
                print(f"{type(error).__name__}: {error}", flush=True)
        finally:
            os._exit(code)
    return child


def ended(child: int, place: Path) -> None:
    """Wait for a fork; write how it ended, if not well."""
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:  # the program has waited for it
        return
    except BaseException:
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        raise
    if os.WIFSIGNALED(status):
        answered(place, why=f"its audit was ended by {signal.Signals(os.WTERMSIG(status)).name}")
    elif status:
        log = place / LOG
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
        answered(place, why=f"its audit failed: {last[-1] if last else 'without a word'}")


def audit_the_rest(folder: Path, say: Callable[[str], None], only: tuple[str, ...] = (), *, seed: int = 0) -> None:
    """Audit, in new processes, the functions whose own process could not: it was killed, or has used CUDA.

    Args:
        folder: of the watch.
        say: told what is being audited.
        only: the packages that are asked about; all if empty.
        seed: of all random numbers.
    """
    from gradspec._engine._pool import processors  # with it comes the engine, which no watched program needs

    with ThreadPoolExecutor(max(1, processors() // 2)) as crew:
        asked = []
        for place, row in list(rows_in(folder)):
            if row.report is not None or row.why or not is_asked(row.key, row.package, only):
                continue
            if not claims(folder, row.key, row.where):
                continue
            about = json.loads((place / FUNCTION).read_text(encoding="utf-8"))
            is_here = (place / HANDED).exists()
            ending = why_not_handed(place) or "the program ended without a goodbye"
            if not (is_here or about["path"] or row.is_operator):
                answered(place, why=f"{ending}, and no other process can import it")
            elif not (is_here or row.files):
                answered(place, why=f"{ending}, and its calls cannot be written to a file")
            else:
                say(row.key)
                asked.append(crew.submit(_alone, place, seed))
        for audit in asked:
            audit.result()


def _alone(place: Path, seed: int) -> None:
    """Audit the function of a folder in a new process."""
    process = json.loads((place.parent / PROCESS).read_text(encoding="utf-8"))
    environment = {name: value for name, value in os.environ.items() if name != FOLDER}
    environment["PYTHONPATH"] = os.pathsep.join(process["path"])
    command = [process["executable"], "-m", "gradspec._watch._alone", str(place), str(seed)]
    done = subprocess.run(command, cwd=process["folder"], env=environment, capture_output=True, text=True, check=False)
    if done.returncode and not (place / REPORT).exists():
        last = done.stderr.strip().splitlines()
        answered(place, why=f"its audit in a new process failed: {last[-1] if last else 'without a word'}")


def _leave_a_removed_folder() -> None:
    try:
        os.getcwd()  # noqa: PTH109  # it raises, and no path can
    except OSError:
        os.chdir("/")


@contextlib.contextmanager
def _as_torch_begins() -> Iterator[None]:
    """Leave what a program is in or has ended with, and no audit works under: a mode, autocast, ranks that are gone."""
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    ranks: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if ranks is not None and ranks.is_initialized():
        ranks._world.default_pg = None  # its threads are not in a fork: a collective raises now, and waited for ever
    torch.autograd.set_detect_anomaly(False)
    torch.set_default_device(None)
    for device in ("cpu", "cuda"):
        torch.set_autocast_enabled(device, False)
    with torch.inference_mode(mode=False), torch.enable_grad(), _disable_current_modes():
        yield


def _to(log: Path) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the program has closed it
            stream.flush()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
