"""What is around a call and must be as before after it: defaults, generators, streams, and torch itself."""

from __future__ import annotations

import io
import operator
import random
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
                moved.append(f"{setting.name} is {after}, was {before}")
                setting.write(before)
        random.setstate(self.python)
        numpy.random.set_state(self.numpy)
        for home in _PATCHABLE:
            moved += _unpatch(home, self.torch[id(home)])
        return moved


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
