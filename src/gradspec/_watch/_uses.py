"""The features that a program uses: autocast, checkpointing, transforms, compilers, several devices."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from enum import StrEnum
from types import FrameType

import torch
from torch.autograd import forward_ad

from gradspec._scope import Scope


class Use(StrEnum):
    """Something of torch that a call of a function runs under."""

    AUTOCAST = "autocast"
    CHECKPOINT = "activation checkpointing"
    HIGHER = "double backward"
    FORWARD_MODE = "forward-mode AD"
    FUNC = "torch.func"
    COMPILE = "torch.compile"
    EXPORT = "torch.export"
    DDP = "DistributedDataParallel"
    FSDP = "FSDP"


#: The scope of laws that a use asks for, beside training.
SCOPES = {
    Use.HIGHER: Scope.HIGHER,
    Use.FORWARD_MODE: Scope.FORWARD,
    Use.FUNC: Scope.FUNC,
    Use.COMPILE: Scope.COMPILE,
    Use.EXPORT: Scope.EXPORT,
    Use.DDP: Scope.DISTRIBUTED,
    Use.FSDP: Scope.DISTRIBUTED,
}
#: A part of the path of a file of torch through which a call comes, and what that means.
_BY_FILE = {
    "torch/utils/checkpoint.py": Use.CHECKPOINT,
    "torch/nn/parallel/distributed.py": Use.DDP,
    "torch/distributed/fsdp/": Use.FSDP,
    "torch/_functorch/eager_transforms.py": Use.FUNC,
    "torch/_functorch/vmap.py": Use.FUNC,
    "torch/export/": Use.EXPORT,
}
#: The packages that call the tests of a program, which may be modules of the package that they test.
_RUNNERS = ("_pytest", "pluggy")
#: What the program itself is called, and in a process that multiprocessing has spawned.
MAIN = ("__main__", "__mp_main__")
try:
    #: The folder in which this process was when its watch began.
    BEGAN_IN = os.getcwd()  # noqa: PTH109  # as os.path has it
except OSError:  # it has been removed
    BEGAN_IN = "/"
#: How far up a stack is read.
_DEPTH = 400


def is_asked(key: str, package: str, only: Collection[str]) -> bool:
    """Whether a function is of one of the packages or modules that are asked about: of all if none is named."""
    return not only or any(package == one or key.startswith((f"{one}.", f"{one}:")) for one in only)


def frames() -> Iterator[FrameType]:
    """Yield the frames of torch and of the program, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEPTH):
        if frame is None:
            return
        if frame.f_globals.get("__package__") != __package__:
            yield frame
        frame = frame.f_back


def is_of_torch(file: str) -> bool:
    """Whether a file is one of torch's own."""
    return file.startswith(_torch_folder())


def seen_on_the_stack(package: str) -> tuple[set[Use], str]:
    """Return what the stack says of a call: the uses, and the line that makes it, outside of the function's package."""
    uses: set[Use] = set()
    is_package = hasattr(sys.modules.get(package), "__path__")
    inside = outside = ""
    for frame in frames():
        file = frame.f_code.co_filename
        if is_of_torch(file):
            uses |= {use for part, use in _BY_FILE.items() if part in file}
            if _is_sharded(frame):
                uses.add(Use.FSDP)
        elif not file.startswith("<"):
            line = f"{file}:{frame.f_lineno}"
            inside = inside or line
            home = str(frame.f_globals.get("__name__")).partition(".")[0]
            if home not in _RUNNERS and not (is_package and home == package):
                outside = outside or line
    return uses, outside or inside


def _is_sharded(frame: FrameType) -> bool:
    """Whether a frame calls a module of `fully_shard`, which works by hooks and so is not on the stack itself."""
    if frame.f_code.co_name != "_call_impl":
        return False
    kind = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", None)
    return kind is not None and isinstance(frame.f_locals.get("self"), kind)


def seen_in_the_state() -> set[Use]:
    """Return what the state of torch says of a call."""
    uses = set()
    if torch._C._is_any_autocast_enabled():
        uses.add(Use.AUTOCAST)
    if torch._C._are_functorch_transforms_active():
        uses.add(Use.FUNC)
    if forward_ad._current_level >= 0:
        uses.add(Use.FORWARD_MODE)
    return uses


def _torch_folder() -> str:
    return torch.__path__[0] + "/"
