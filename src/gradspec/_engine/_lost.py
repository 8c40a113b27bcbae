"""A lost CUDA device: after a failed assertion or an illegal access there, each later call of the process raises."""

from __future__ import annotations

import torch

from gradspec.law import Finding, Status


def why_lost(device: str) -> str:
    """Return what a CUDA device raises that is lost to this process, in one line; empty if it is not lost."""
    if not (device.startswith("cuda") and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]  # torch's own
        return ""
    try:
        torch.cuda.synchronize(device)
    except torch.AcceleratorError as error:
        return str(error).partition("\n")[0]
    return ""


def lost(why: str) -> Finding:
    """Return the finding that a call has lost the device."""
    return Finding(
        status=Status.ERROR,
        message=f"the device is lost to this process: {why}",
        likely="an index that is out of range, or a kernel that reads or writes memory that is not there",
    )
