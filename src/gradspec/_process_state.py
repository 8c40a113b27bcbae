"""Process-wide state that a call must restore: defaults, generators, streams and torch's own settings."""

from __future__ import annotations

import ctypes
import io
import locale
import operator
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import torch

_TORCH = Path(torch.__file__).parent
#: Where a patch of torch would be seen by everybody.
_PATCHABLE: tuple[Any, ...] = (torch, torch.Tensor, torch.autograd, torch.autograd.Function, torch.nn.functional)


@dataclass(frozen=True)
class _Setting:
    """One switch of the process: how it is read, and how it is put back."""

    name: str
    read: Any
    write: Any
    #: Whether a first call may set it for good, as an import inside of it does: only a second call shows more.
    is_lazy: bool = False


def _autocast() -> tuple[Any, ...]:
    return tuple((torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in _DEVICES)


def _set_autocast(before: tuple[Any, ...]) -> None:
    for device, (enabled, dtype) in zip(_DEVICES, before, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


def _flushes() -> bool:
    """Whether results too small for a normal number become 0: torch has a setter of it, and nothing that reads it."""
    return bool(operator.truediv(sys.float_info.min, 2.0) == 0.0)


def _rounding() -> str:
    """Return how sums are rounded: C's fesetround has no other reader in Python."""
    up, down = operator.add(1.0, 1e-30) > 1.0, operator.sub(1.0, 1e-30) < 1.0
    return {(False, False): "to nearest", (True, False): "upward", (False, True): "downward or to zero"}[up, down]


def _set_rounding(_: str) -> None:
    ctypes.CDLL(None).fesetround(0)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""  # it was removed


def _set_folder(before: str) -> None:
    if before:
        os.chdir(before)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_OF_COMPILERS)}


def _set_environment(before: dict[str, str]) -> None:
    for name in set(_environment()) - set(before):
        del os.environ[name]
    os.environ.update(before)


def _handlers() -> tuple[Any, ...]:
    return tuple(map(signal.getsignal, _SIGNALS))


def _set_handlers(before: tuple[Any, ...]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in zip(_SIGNALS, before, strict=True):
            if handler is not None:  # it was not set from Python
                signal.signal(number, handler)


def _filters() -> list[Any]:
    return list(warnings.filters)


def _set_filters(before: list[Any]) -> None:
    warnings.filters[:] = before  # type: ignore[index]  # it is a list


def _print_options() -> dict[str, Any]:
    return dict(vars(torch._tensor_str.PRINT_OPTS))


def _set_print_options(before: dict[str, Any]) -> None:
    vars(torch._tensor_str.PRINT_OPTS).update(before)


_DEVICES = ("cpu", "cuda")
#: What a compiler notes in the environment for itself.
_OF_COMPILERS = ("TORCHINDUCTOR_", "TRITON_")
#: The signals that programs handle.
_SIGNALS = tuple(
    getattr(signal, name)
    for name in (
        "SIGINT",
        "SIGTERM",
        "SIGHUP",
        "SIGALRM",
        "SIGUSR1",
        "SIGUSR2",
        "SIGCHLD",
        "SIGPIPE",
        "SIGFPE",
        "SIGABRT",
    )
    if hasattr(signal, name)
)


_SETTINGS = (
    _Setting("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    _Setting("the default device", lambda: torch.get_default_device().type, torch.set_default_device),
    _Setting("grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    _Setting(
        "deterministic algorithms",
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    _Setting("anomaly detection", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    _Setting("the number of threads", torch.get_num_threads, torch.set_num_threads),
    _Setting("autocast", _autocast, _set_autocast),
    _Setting("the cache of autocast", torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    _Setting(
        "the precision of float32 matrix products",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    _Setting("flushing of denormal numbers", _flushes, torch.set_flush_denormal),
    _Setting("the rounding of floating-point numbers", _rounding, _set_rounding),
    _Setting("how tensors are printed", _print_options, _set_print_options),
    _Setting("warnings of torch each time", torch.is_warn_always_enabled, torch.set_warn_always),
    _Setting("the umask", _umask, os.umask),
    _Setting("the current folder", _folder, _set_folder),
    _Setting("the locale", lambda: locale.setlocale(locale.LC_ALL), partial(locale.setlocale, locale.LC_ALL)),
    _Setting("the limit of recursion", sys.getrecursionlimit, sys.setrecursionlimit),
    _Setting("the environment", _environment, _set_environment, is_lazy=True),
    _Setting("the handlers of signals", _handlers, _set_handlers, is_lazy=True),
    _Setting("the filters of warnings", _filters, _set_filters, is_lazy=True),
)
#: How what is said of those begins that a first call may set for good.
LAZY = tuple(setting.name for setting in _SETTINGS if setting.is_lazy)


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
            settings=tuple(setting.read() for setting in _SETTINGS),
            python=random.getstate(),
            numpy=numpy.random.get_state(legacy=False),
            torch={id(home): dict(vars(home)) for home in _PATCHABLE},
        )

    def restore(self) -> list[str]:
        """Put everything back; return what had moved, in words. Of the generators the law `declared_draws` speaks."""
        moved = []
        for setting, before in zip(_SETTINGS, self.settings, strict=True):
            if (after := setting.read()) != before:
                moved.append(_said(setting.name, after, before))
                setting.write(before)
        random.setstate(self.python)
        numpy.random.set_state(self.numpy)
        for home in _PATCHABLE:
            moved += _unpatch(home, self.torch[id(home)])
        return moved


def _said(name: str, after: Any, before: Any) -> str:
    """Return what has moved, in words: of a dict or a tuple its first part that has."""
    if isinstance(after, dict):
        part = next(key for key in sorted({*after, *before}) if after.get(key) != before.get(key))
        return f"{name} is changed: {part} is {after.get(part)!r}, was {before.get(part)!r}"
    if name == "autocast":
        pairs = zip(_DEVICES, after, before, strict=True)
        device, now, was = next((device, now, was) for device, now, was in pairs if now != was)
        on = ("off", "on")
        return f"{name} is {on[now[0]]} on {device} ({now[1]}), was {on[was[0]]} ({was[1]})"
    if isinstance(after, tuple):
        number, now, was = next(both for both in zip(_SIGNALS, after, before, strict=True) if both[1] != both[2])
        return f"{name} are changed: that of {number.name} is {now}, was {was}"
    if isinstance(after, list):
        return f"{name} are changed: there are {len(after)}, there were {len(before)}"
    if name == "the umask":
        return f"{name} is {after:#o}, was {before:#o}"
    return f"{name} is {after}, was {before}"


@contextmanager
def listening() -> Iterator[io.StringIO]:
    """Catch what Python code prints to stdout and stderr."""
    heard, streams = io.StringIO(), (sys.stdout, sys.stderr)
    sys.stdout = sys.stderr = heard
    try:
        yield heard
    finally:
        sys.stdout, sys.stderr = streams


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
