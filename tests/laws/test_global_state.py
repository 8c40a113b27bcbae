"""A setting of the process that a call moves is named, and put back."""

from __future__ import annotations

import builtins
import ctypes
import gc
import locale
import logging
import os
import signal
import sys
import warnings

import numpy
import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from gradspec import audit
from gradspec.laws import LAWS
from squaring import squaring

LAW = [law for law in LAWS if law.name == "global_state"]
UPWARD = 0x800  # FE_UPWARD on x86-64

MOVES = {
    "autocast is on on cpu": lambda: torch.set_autocast_enabled("cpu", True),
    "the cache of autocast is False": lambda: torch.set_autocast_cache_enabled(False),
    "the precision of float32 matrix products is medium": lambda: torch.set_float32_matmul_precision("medium"),
    "flushing of denormal numbers is True": lambda: torch.set_flush_denormal(True),
    "the rounding of floating-point numbers is upward": lambda: ctypes.CDLL(None).fesetround(UPWARD),
    "how tensors are printed is changed: precision is 2": lambda: torch.set_printoptions(precision=2),
    "warnings of torch each time is True": lambda: torch.set_warn_always(True),
    "the umask is 0o777": lambda: os.umask(0o777),
    "the current folder is /": lambda: os.chdir("/"),
    "the limit of recursion is 4321": lambda: sys.setrecursionlimit(4321),
    "the environment is changed: A_NAME is 'set'": lambda: os.environ.update(A_NAME="set"),
    "the handlers of signals are changed: that of SIGUSR1": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
    "the filters of warnings are changed": lambda: warnings.filterwarnings("ignore", message="of a function"),
    "the filters of warnings are changed: ": lambda: warnings.simplefilter("ignore"),
    "determinism of algorithms is changed: enabled is True": lambda: torch.use_deterministic_algorithms(True),
    "determinism of algorithms is changed: warn_only is True": lambda: torch.use_deterministic_algorithms(
        False, warn_only=True
    ),
    "anomaly detection is changed: enabled is True": lambda: torch.autograd.set_detect_anomaly(True),
    "anomaly detection is changed: check_nan is False": lambda: torch.autograd.set_detect_anomaly(
        False, check_nan=False
    ),
    "torch.backends is changed: cudnn.benchmark is True": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "the choice of attention kernels is changed: math is False": lambda: torch.backends.cuda.enable_math_sdp(False),
    "the stack of modes is changed: hooks on saved tensors": lambda: saved_tensors_hooks(
        lambda t: t, lambda t: t
    ).__enter__(),
    "the stack of modes is changed: function modes is": lambda: torch.device("cpu").__enter__(),
    "what numpy does about errors is changed: divide is 'ignore'": lambda: numpy.seterr(divide="ignore"),
    "the garbage collector is changed: enabled is False": gc.disable,
    "the logger at the root is changed: disable is 50": lambda: logging.disable(logging.CRITICAL),
    "sys is changed: excepthook is": lambda: setattr(sys, "excepthook", print),
    "builtins.sorted has been replaced": lambda: setattr(builtins, "sorted", list),
    "torch.linalg.inv has been replaced": lambda: setattr(torch.linalg, "inv", print),
    "the locale is": lambda: locale.setlocale(locale.LC_NUMERIC, other_locale()),
}


def other_locale() -> str:
    now = locale.setlocale(locale.LC_NUMERIC)
    for name in ("C.UTF-8", "C.utf8", "en_US.UTF-8", "C", "POSIX"):
        if name != now:
            try:
                locale.setlocale(locale.LC_NUMERIC, name)
            except locale.Error:
                continue
            locale.setlocale(locale.LC_NUMERIC, now)
            return name
    pytest.skip("there is one locale here")


def messages(move) -> list[str]:
    report = audit(squaring(move), ["(randn(3),)"], laws=LAW).report
    return [verdict.finding.message for verdict in report.violations]


@pytest.mark.parametrize("said", MOVES)
def test_what_a_call_moves_is_named(said):
    if "rounding" in said and os.uname().machine != "x86_64":
        pytest.skip("another number means upward here")
    found = messages(MOVES[said])
    assert len(found) == 1
    assert found[0].startswith(f"forward: {said}")


def test_a_call_that_moves_nothing_holds():
    assert messages(lambda: None) == []


def test_what_only_an_import_within_the_first_call_does_is_not_the_functions():
    done = []

    def once():
        if not done:
            done.append(True)
            warnings.filterwarnings("ignore", message="of an import")
            os.environ["OF_AN_IMPORT"] = "set"

    assert messages(once) == []


@pytest.mark.parametrize(
    "prints",
    [lambda: os.write(1, b"seen"), lambda: ctypes.CDLL(None).printf(b"seen"), lambda: print("seen")],
    ids=["os.write", "printf", "print"],
)
def test_what_is_printed_is_heard_at_any_level_and_not_shown(prints, capfd):
    found = messages(prints)
    assert found == ["it prints 'seen'"]
    assert "seen" not in capfd.readouterr().out
