"""Ranks for a law that judges on a mesh: simulated in this process or, where torch cannot do that, two processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from gradspec.law import HOLDS, Finding, Reason, Status, broken, shown
from gradspec.laws.tensor.support._call import SpecFaultError, StandInError
from gradspec.laws.tensor.support._ranks import (
    GROUP_EXISTS,
    RANKS,
    RefusedElsewhereError,
    UnsimulatedError,
    simulated_mesh,
)
from gradspec.laws.tensor.support._two_ranks import RankError, on_two_ranks

#: A judgement on a mesh, the same on each of its ranks.
Judge = Callable[[Any], Finding]
#: What a finding of the other process keeps of itself on its way here.
_KEPT = ("status", "message", "argument", "index", "got", "expected", "likely", "reason")
#: What a process says that cannot judge.
_NO_GRADIENT = "a forked process takes no gradient"


def found_on_ranks(judge: Judge, device_type: str) -> Finding:
    """Return what is found on simulated ranks; what cannot be called on them, real ones are asked too.

    Raises:
        UnsimulatedError: neither can be had here.
        Exception: what the judgement raised.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        raise UnsimulatedError(GROUP_EXISTS)
    found: Finding | None = None
    trouble: Exception | None = None
    try:
        with simulated_mesh(device_type) as mesh:
            found = judge(mesh)
        if "raised" not in found.details:
            return found
    except (SpecFaultError, StandInError):
        raise
    except Exception as error:  # which may be that a simulated rank has no number that Python can read
        trouble = error
    try:
        return found_on_two(judge, device_type)
    except UnsimulatedError as error:
        if found is not None:
            return found
        if trouble is None or isinstance(trouble, UnsimulatedError):
            raise UnsimulatedError(f"{trouble}; {error}") from None
        raise trouble from None


def found_on_two(judge: Judge, device_type: str) -> Finding:
    """Return what two processes find that are joined by gloo; the other is forked, so that it has any spec.

    Raises:
        UnsimulatedError: there can be no such processes here.
        Exception: what the judgement raised on this rank, if it was the first.
    """
    if reason := _refusal(device_type):
        raise UnsimulatedError(f"two processes cannot be had either: {reason}")
    found: list[Finding] = []
    errors: list[Exception] = []

    def work(rank: int) -> dict[str, Any]:
        from torch.distributed.device_mesh import init_device_mesh

        _take_gradient()
        try:
            found.append(judge(init_device_mesh(device_type, (RANKS,))))
        except Exception as error:
            errors.append(error)
            raise
        plain = asdict(found[0])
        return {name: plain[name] for name in _KEPT} | {"status": found[0].status.value}

    try:
        _, theirs = on_two_ranks(work)
    except RankError as error:
        if _NO_GRADIENT in str(error):
            raise UnsimulatedError(f"two processes cannot be had either: {error}") from None
        first = errors[0] if errors else error
        if isinstance(first, RefusedElsewhereError):
            return broken(str(first), details={"raised": str(first)})
        if error.rank == 0:
            raise first from None
        return broken(str(error), details={"raised": str(error)})
    if found[0].status is not Status.HOLDS:
        return found[0]
    if theirs["status"] == Status.HOLDS:
        return HOLDS
    why = None if theirs["reason"] is None else Reason(**theirs["reason"])
    return Finding(**{**theirs, "status": Status(theirs["status"]), "reason": why})


def _refusal(device_type: str) -> str:
    if device_type != "cpu":
        return f"they compute on a CPU, and the case is on {device_type}"
    if not sys.platform.startswith("linux"):
        return f"this law forks them on Linux only, and this is {sys.platform}"
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        return f"torch {torch.__version__} is built without gloo"
    return ""


def _take_gradient() -> None:
    """Take one: beside threads of autograd, torch refuses it in a process that is forked."""
    try:
        _a_gradient()
    except RuntimeError as error:
        raise RuntimeError(f"{_NO_GRADIENT}: {shown(error)}") from None


def _a_gradient() -> None:
    torch.ones((), requires_grad=True).backward()  # type: ignore[no-untyped-call]  # torch's own
