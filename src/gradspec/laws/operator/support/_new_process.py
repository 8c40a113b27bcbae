"""Exported programs, saved, then loaded and run in one new process, which imports what registers their operator."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

#: What the new process runs; a folder is its argument.
_LOADS = """
import gc, importlib, importlib.util, sys
from pathlib import Path
gc.disable()  # searches of what is imported take a third of its seconds
import torch
torch.set_num_threads(1)
folder = Path(sys.argv[1])
given = torch.load(folder / "given.pt", weights_only=False)
for name, file in given["modules"].items():
    if file is None:
        importlib.import_module(name)
    else:
        sys.path.insert(0, str(Path(file).parent))
        spec = importlib.util.spec_from_file_location(name, file)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
namespace, _, name = given["operator"].partition("::")
if not hasattr(getattr(torch.ops, namespace), name.partition(".")[0]):
    imported = ", ".join(given["modules"]) or "nothing"
    raise LookupError(
        f"{given['operator']} is not registered by importing {imported}: import its library in the module of `primal`"
    )

def run(program, tensors, wanted, cotangents):
    tensors = [t.requires_grad_(k in wanted) for k, t in enumerate(tensors)]
    y = program(*tensors)
    y = tuple(y) if isinstance(y, (tuple, list)) else (y,)
    pairs = [(t, v) for t, v in zip(y, cotangents) if t.requires_grad]
    leaves, got = [tensors[k] for k in wanted], None
    if pairs and leaves:
        got = torch.autograd.grad([t for t, _ in pairs], leaves, [v for _, v in pairs], allow_unused=True)
    return {"values": [t.detach() for t in y], "gradients": got}

found = []
for k, one in enumerate(given["runs"]):
    try:
        found.append(run(torch.export.load(folder / f"{k}.pt2").module(), *one))
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}")
torch.save(found, folder / "found.pt")
gc.freeze()
"""


@dataclass(frozen=True)
class Program:
    """An exported program, and the call of it."""

    exported: Any
    tensors: Sequence[Tensor]
    #: The places of the tensors whose gradients are asked for.
    wanted: Sequence[int]
    cotangents: Sequence[Tensor]


class NewProcessError(Exception):
    """The new process ended before it had run the programs, with the last line that it wrote."""


def run_elsewhere(
    programs: Sequence[Program], operator: str, modules: Mapping[str, str | None]
) -> list[dict[str, Any] | str]:
    """Run programs in one new process.

    Args:
        programs: what to run.
        operator: the name of the operator that they call.
        modules: what is imported first, each with its file where it is not found by its name.

    Returns:
        For each program `values` and `gradients`, None where no output has a graph; or the error that it raised.

    Raises:
        NewProcessError: none was run.
    """
    with tempfile.TemporaryDirectory() as folder:
        for k, program in enumerate(programs):
            torch.export.save(program.exported, Path(folder) / f"{k}.pt2")
        runs = [(list(p.tensors), list(p.wanted), list(p.cotangents)) for p in programs]
        torch.save({"modules": dict(modules), "operator": operator, "runs": runs}, Path(folder) / "given.pt")
        words = [sys.executable, "-c", _LOADS, folder]
        # A watch of the tests that run this law is told of no process of its own.
        unwatched = {name: value for name, value in os.environ.items() if not name.startswith("GRADSPEC_WATCH")}
        run = subprocess.run(words, env=unwatched, capture_output=True, text=True, check=False)
        if run.returncode:
            raise NewProcessError((run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1])
        found: list[dict[str, Any] | str] = torch.load(Path(folder) / "found.pt", weights_only=True)
        return found
