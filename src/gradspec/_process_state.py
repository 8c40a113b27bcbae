"""Process-wide state that a call must restore: defaults, generators, streams and torch's own settings."""

from __future__ import annotations

import builtins
import ctypes
import io
import operator
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy
import torch

from gradspec._settings import SETTINGS, told

_TORCH = Path(torch.__file__).parent
#: Where a patch of torch would be seen by everybody.
_PATCHABLE: tuple[Any, ...] = (
    builtins,
    torch,
    torch.Tensor,
    torch.autograd,
    torch.autograd.Function,
    torch.linalg,
    torch.nn.Module,
    torch.nn.functional,
    torch.nn.init,
)


@dataclass(frozen=True)
class Surroundings:
    """The state of the process at one moment."""

    settings: tuple[Any, ...]
    python: Any
    numpy: Any
    torch: Mapping[int, Mapping[str, Any]]

    @classmethod
    def now(cls) -> Surroundings:
        """Look around."""
        return cls(
            settings=tuple(setting.read() for setting in SETTINGS),
            python=random.getstate(),
            numpy=numpy.random.get_state(legacy=False),
            torch={id(home): dict(vars(home)) for home in _PATCHABLE},
        )

    def restore(self) -> list[str]:
        """Put everything back; return what had moved, in words. Of the generators the law `declared_draws` speaks."""
        moved = []
        for setting, before in zip(SETTINGS, self.settings, strict=True):
            if (after := setting.read()) != before:
                moved.append(told(setting.name, after, before))
                setting.write(before)
        random.setstate(self.python)
        numpy.random.set_state(self.numpy)
        for home in _PATCHABLE:
            moved += _unpatch(home, self.torch[id(home)])
        return moved


class _Mark(Warning):
    """A category of which nobody warns."""


@contextmanager
def marked_filters() -> Iterator[None]:
    """Put a filter before all others, so that one that is set again, and moves to the front, is seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", _Mark)
        yield


@contextmanager
def listening() -> Iterator[Callable[[], str]]:
    """Catch what is printed: by Python code to stdout and stderr, and by any code to the descriptor of stdout."""
    heard, streams = io.StringIO(), (sys.stdout, sys.stderr)
    sys.stdout = sys.stderr = heard
    with tempfile.TemporaryFile() as below:
        try:
            kept = os.dup(1)
        except OSError:  # it is closed
            kept = -1
        else:
            os.dup2(below.fileno(), 1)
        try:
            yield lambda: (heard.getvalue() + _written_to(below)).strip()
        finally:
            sys.stdout, sys.stderr = streams
            if kept >= 0:
                ctypes.CDLL(None).fflush(None)
                os.dup2(kept, 1)
                os.close(kept)


def _written_to(file: IO[bytes]) -> str:
    ctypes.CDLL(None).fflush(None)  # C has a buffer of its own
    file.seek(0)
    return file.read().decode(errors="replace")


@contextmanager
def unwarned() -> Iterator[None]:
    """Drop what is warned of: filters that raise would make an error of what torch says of itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def seed_torch(seed: int) -> None:
    """Seed the generators of the devices that are in use.

    `torch.manual_seed` writes the stack of the call down for each kind of device that is not, and keeps it: a
    millisecond for each call of a function.
    """
    in_use = any(one.is_initialized() for one in (torch.cuda, torch.xpu, torch.mtia))
    if in_use or sys.platform == "darwin" or torch._C._get_privateuse1_backend_name() != "privateuseone":
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@contextmanager
def preserved_process_state(device: str, seed: int) -> Iterator[None]:
    """Draw from generators of its own, warn nobody, and put back whatever is changed meanwhile."""
    before = Surroundings.now()
    devices = list(range(torch.cuda.device_count())) if device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices), unwarned(), _without_tf32(device):
        seed_torch(seed)
        # torch says for each operator without a rule for vmap that a loop is slower.
        torch._C._functorch._set_vmap_fallback_warning_enabled(False)  # type: ignore[attr-defined]  # it has no stub
        try:
            yield
        finally:
            torch._C._functorch._set_vmap_fallback_warning_enabled(True)  # type: ignore[attr-defined]
            before.restore()


@contextmanager
def _without_tf32(device: str) -> Iterator[None]:
    """Let float32 be float32: a convolution on a CUDA device keeps 10 bits of its factors unless told otherwise."""
    before = torch.backends.cudnn.allow_tf32
    if device.startswith("cuda"):
        torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        if device.startswith("cuda"):
            torch.backends.cudnn.allow_tf32 = before


def _is_of_torch(value: Any) -> bool:
    """Whether a function was written by torch, which wraps some of its own when its compiler is first imported."""
    code = getattr(value, "__code__", None)
    return code is not None and Path(code.co_filename).is_relative_to(_TORCH)


def _unpatch(home: Any, before: Mapping[str, Any]) -> list[str]:
    now = vars(home)
    if all(map(operator.is_, map(now.get, before), before.values())):
        return []  # the usual end, before and after every check, of some thousand names
    where = getattr(home, "__qualname__", home.__name__)
    moved = []
    for name, value in before.items():
        if now.get(name) is not value and not isinstance(value, ModuleType) and not _is_of_torch(now.get(name)):
            moved.append(f"{where}.{name} has been replaced")
            setattr(home, name, value)
    return moved
