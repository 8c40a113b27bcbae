"""Find the laws and specs that an edit touches: those whose files reach a changed file by imports."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SRC = ROOT / "src"


def changed_files(base: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the files that differ from where a branch left another, committed or not; paths from the root.

    Raises:
        LookupError: git knows no such commit.
    """
    command = ["git", "-C", str(root), "diff", "--name-only", "--merge-base", base]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LookupError(f"git diff against {base}: {done.stderr.strip()}")
    return tuple(done.stdout.split())


@cache
def _files() -> Mapping[str, Path]:
    """Return each module of the tree by its import path."""
    paths = (path.relative_to(SRC) for path in SRC.rglob("*.py"))
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): SRC / path for path in paths}


@cache
def _imports(module: str) -> frozenset[str]:
    """Return the modules of the tree that a module names in an import; of a package, what it takes from it."""
    found = set()
    for node in ast.walk(ast.parse(_files()[module].read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & _files().keys() or {node.module}
    return frozenset(found & _files().keys())


def reached(module: str) -> frozenset[str]:
    """Return the modules that a module reaches by imports, itself among them.

    The lists of all laws and of all specs are not entered: whoever takes one law from such a list depends on no other.
    """
    seen, left = set(), [module]
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left += [name for name in _imports(one) if name not in seen and name not in LISTS]
    return frozenset(seen)


#: Modules that import all there is of a kind.
LISTS = frozenset(
    {"gradspec", "gradspec.laws", "gradspec.functions", "gradspec.nn", "gradspec.operators", "gradspec.text"}
)


def touched(homes: Mapping[str, str], changed: Collection[str]) -> Iterator[str]:
    """Yield the names whose home reaches one of the changed files.

    Args:
        homes: the module of each law, spec or specimen, by its name.
        changed: paths from the root.
    """
    edited = {name for name, path in _files().items() if path.relative_to(ROOT).as_posix() in changed}
    yield from (name for name, home in homes.items() if home in _files() and edited & reached(home))
