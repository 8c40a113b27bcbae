"""Where, when, on what versions and of which source a measurement was made."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import torch

import gradspec
from gradspec.law import Law
from gradspec.profile import Profile
from gradspec.promise import Spec
from gradspec.report import Source
from gradspec.source import fingerprint, import_closure, package_root


def sources(specs: Sequence[Spec], laws: Sequence[Law]) -> dict[str, Source]:
    """Return the source of each spec and law, by "spec NAME" and "law NAME"."""
    modules = {f"spec {spec.name}": spec.modules for spec in specs}
    modules |= {f"law {law.name}": (getattr(law.check, "__module__", None) or "__main__",) for law in laws}
    return {name: source_of(*found) for name, found in modules.items()}


def source_of(module: str, *others: str) -> Source:
    """Return the source that a module stands on, and of other modules what is in the same package."""
    top = module.partition(".")[0]
    root = package_root(top)
    together = (module, *(other for other in others if root and other.partition(".")[0] == top))
    files = tuple(sorted({file for name in together for file in import_closure(name)}))
    return Source(package=top if root else "", files=files, hash=fingerprint(files, root))


def provenance(profile: Profile, seed: int) -> dict[str, Any]:
    """Return where, when and on what versions a measurement was made."""
    cuda = profile.device.startswith("cuda") and torch.cuda.is_available()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "gradspec": gradspec.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "device": torch.cuda.get_device_name() if cuda else profile.device,
        "seed": seed,
        "profile": asdict(profile),
    }


def _commit() -> str:
    """Return the commit of the working directory, "+" behind it if something has changed since; "" outside git."""
    try:
        answers = [
            subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=Path.cwd()).stdout.strip()
            for words in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answers[0] + ("+" if answers[1] else "")
