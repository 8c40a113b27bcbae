"""The summary of the specs of packages, as the site reads it: a build of pages loads no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradspec._record import read

KIND = "package_specs"
AGAIN = "python -m gradspec_lab campaign --specs"


def read_specs(path: Path) -> dict[str, Any]:
    """Return a summary of the specs.

    Raises:
        RecordError: the file cannot be read, or is of something else.
    """
    return read(path, KIND, again=AGAIN)
