"""Data and native libraries that lie with a module and may be read by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gradspec._record._modules import Module


def data_of(module: Module) -> Iterator[Path]:
    """Yield the data and native libraries that lie with a module: below its package, or in the folder of a script."""
    is_script = module.name.endswith(".py")
    for path in sorted(module.file.parent.glob("*") if is_script else module.file.parent.rglob("*")):
        is_code = path.suffix in (".py", ".pyc", ".pyi") or "__pycache__" in path.parts
        if not is_code and path.is_file() and not _is_record(path):
            yield path


def _is_record(path: Path) -> bool:
    """Whether a file is a record: what a script measures is not what it depends on."""
    if path.suffix != ".json":
        return False
    with path.open("rb") as file:
        return b'"schema"' in (beginning := file.read(80)) and b'"kind"' in beginning
