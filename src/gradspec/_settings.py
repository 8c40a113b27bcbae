"""Settings of the process that a call must restore: how each is read, put back and told."""

from __future__ import annotations

import ctypes
import gc
import locale
import logging
import operator
import os
import signal
import sys
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy
import torch


@dataclass(frozen=True)
class Setting:
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


def _attributes(*names: str) -> Setting:
    """Return the setting that is a few switches of torch.backends, by their names."""
    places = {name: name.split(".") for name in names}

    def home(name: str) -> tuple[Any, str]:
        *path, last = places[name]
        return reduce(getattr, path, torch.backends), last

    def write(before: Mapping[str, Any]) -> None:
        for name, value in before.items():
            setattr(*home(name), value)

    return Setting("torch.backends", lambda: {name: getattr(*home(name)) for name in names}, write)


def _sdp() -> dict[str, bool]:
    return {name: bool(getattr(torch.backends.cuda, f"{name}_sdp_enabled")()) for name in _SDP}


def _set_sdp(before: Mapping[str, bool]) -> None:
    for name, value in before.items():
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(value)


def _set_anomaly(before: Mapping[str, bool]) -> None:
    torch.autograd.set_detect_anomaly(before["enabled"], before["check_nan"])


def _set_deterministic(before: Mapping[str, bool]) -> None:
    torch.use_deterministic_algorithms(before["enabled"], warn_only=before["warn_only"])


def _set_errors(before: Mapping[str, Any]) -> None:
    numpy.seterr(**before)


def _logging() -> dict[str, Any]:
    root = logging.root
    return {"level": root.level, "disable": root.manager.disable, "handlers": tuple(map(str, root.handlers))}


def _set_logging(before: Mapping[str, Any]) -> None:
    logging.root.setLevel(before["level"])
    logging.root.manager.disable = before["disable"]
    for handler in [one for one in logging.root.handlers if str(one) not in before["handlers"]]:
        logging.root.removeHandler(handler)


def _collection() -> dict[str, Any]:
    return {"enabled": gc.isenabled(), "thresholds": gc.get_threshold()}


def _set_collection(before: Mapping[str, Any]) -> None:
    (gc.enable if before["enabled"] else gc.disable)()
    gc.set_threshold(*before["thresholds"])


def _hooks() -> dict[str, Any]:
    return {name: getattr(sys, name) for name in ("excepthook", "displayhook", "unraisablehook")}


def _set_hooks(before: Mapping[str, Any]) -> None:
    for name, value in before.items():
        setattr(sys, name, value)


def _modes() -> dict[str, Any]:
    saved = torch._C._autograd._top_saved_tensors_default_hooks(False)
    return {
        "hooks on saved tensors": None if saved is None else tuple(saved),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "function modes": torch._C._len_torch_function_stack(),
        "inference mode": torch.is_inference_mode_enabled(),
    }


def _set_modes(before: Mapping[str, Any]) -> None:
    while _modes()["hooks on saved tensors"] not in (None, before["hooks on saved tensors"]):
        torch._C._autograd._pop_saved_tensors_default_hooks()
    while torch._C._len_torch_dispatch_stack() > before["dispatch modes"]:
        torch._C._pop_torch_dispatch_stack(None)
    while torch._C._len_torch_function_stack() > before["function modes"]:
        torch._C._pop_torch_function_stack()


def _print_options() -> dict[str, Any]:
    return dict(vars(torch._tensor_str.PRINT_OPTS))


def _set_print_options(before: dict[str, Any]) -> None:
    vars(torch._tensor_str.PRINT_OPTS).update(before)


_DEVICES = ("cpu", "cuda")
_SDP = ("flash", "mem_efficient", "math", "cudnn")
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


SETTINGS = (
    Setting("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("the default device", lambda: torch.get_default_device().type, torch.set_default_device),
    Setting("grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting(
        "determinism of algorithms",
        lambda: {
            "enabled": torch.are_deterministic_algorithms_enabled(),
            "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        },
        _set_deterministic,
    ),
    Setting(
        "anomaly detection",
        lambda: {"enabled": torch.is_anomaly_enabled(), "check_nan": torch.is_anomaly_check_nan_enabled()},
        _set_anomaly,
    ),
    Setting("the number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting("autocast", _autocast, _set_autocast),
    Setting("the cache of autocast", torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    Setting(
        "the precision of float32 matrix products",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    Setting("flushing of denormal numbers", _flushes, torch.set_flush_denormal),
    Setting("the rounding of floating-point numbers", _rounding, _set_rounding),
    Setting("how tensors are printed", _print_options, _set_print_options),
    Setting("warnings of torch each time", torch.is_warn_always_enabled, torch.set_warn_always),
    _attributes("cudnn.enabled", "cudnn.benchmark", "cudnn.deterministic", "mkldnn.enabled", "opt_einsum.strategy"),
    Setting("the choice of attention kernels", _sdp, _set_sdp),
    Setting("the stack of modes", _modes, _set_modes),
    Setting("what numpy does about errors", numpy.geterr, _set_errors),
    Setting("the garbage collector", _collection, _set_collection),
    Setting("the logger at the root", _logging, _set_logging, is_lazy=True),
    Setting("sys", _hooks, _set_hooks, is_lazy=True),
    Setting("the umask", _umask, os.umask),
    Setting("the current folder", _folder, _set_folder),
    Setting("the locale", lambda: locale.setlocale(locale.LC_ALL), partial(locale.setlocale, locale.LC_ALL)),
    Setting("the limit of recursion", sys.getrecursionlimit, sys.setrecursionlimit),
    Setting("the environment", _environment, _set_environment, is_lazy=True),
    Setting("the handlers of signals", _handlers, _set_handlers, is_lazy=True),
    Setting("the filters of warnings", _filters, _set_filters, is_lazy=True),
)
#: How what is said of those begins that a first call may set for good.
LAZY = tuple(setting.name for setting in SETTINGS if setting.is_lazy)


def told(name: str, after: Any, before: Any) -> str:
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
