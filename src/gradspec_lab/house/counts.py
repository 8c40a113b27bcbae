"""Count what a tree of gradspec is made of, as JSON: `python src/gradspec_lab/house/counts.py --root TREE`.

It needs grimp and what gradspec needs, and imports the gradspec of that tree, which may be older than this file.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grimp

#: Prints which modules of ours are loaded by the import that users write.
LOADED = "import sys; from gradspec import verify; print(sum(m.partition('.')[0] == 'gradspec' for m in sys.modules))"
#: Prints how many files of ours one check enters on its way through `verify`, and how often the next call is elsewhere.
WALKED = """
import os, sys
import gradspec
from gradspec import verify
from gradspec.functions import GRAD_FACTOR
from gradspec.laws import LAWS
(vjp,) = (law for law in LAWS if law.name == "vjp")
case = next(iter(verify([GRAD_FACTOR], [vjp], isolate=False, jobs=1).verdicts)).case
ours, calls = os.path.dirname(gradspec.__file__), []
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(ours):
        calls.append(frame.f_code.co_filename)
sys.setprofile(note)
verify([GRAD_FACTOR], [vjp], case=case, isolate=False, jobs=1)
sys.setprofile(None)
print(len(calls), len(set(calls)), sum(a != b for a, b in zip(calls, calls[1:])))
"""


def counted(root: Path) -> dict[str, Any]:
    """Return each count by its name, and the circles of files themselves."""
    package, source = root / "src" / "gradspec", root / "src"
    graph = grimp.build_graph("gradspec", exclude_type_checking_imports=True, cache_dir=None)
    importers = [len(graph.find_modules_that_directly_import(module)) for module in graph.modules]
    files = circles(graph)
    core, text = written(package), [file for file in written(package) if "text" in file.relative_to(package).parts]
    laboratory = [*written(package / "selftest"), *written(root / "tools"), *written(source / "gradspec_lab")]
    shipped = [file for file in core if "selftest" not in file.relative_to(package).parts]
    arrows = rooms(graph)
    names = tomllib.loads((root / "tests" / "public_names.toml").read_text(encoding="utf-8"))["names"]
    records = sorted((root / "docs" / "records").rglob("*.json"))
    calls, entered, hops = map(int, printed(WALKED).split())
    counts = {
        "lines of the package": lines(core),
        "files of the package": len(core),
        "lines of the package without text": lines(file for file in core if file not in text),
        "lines of the product without text": lines(file for file in shipped if file not in text),
        "lines of the laboratory": lines(laboratory),
        "files of the laboratory": len(laboratory),
        "lines of tests": lines(written(root / "tests")),
        "rooms": len(graph.find_children("gradspec")),
        "arrows between rooms": len(arrows),
        "circles of rooms": len(groups({a: {d for c, d in arrows if c == a} for a, _ in arrows})),
        "circles of files": len(files),
        "files in circles": sum(map(len, files)),
        "files with one importer": importers.count(1),
        "public names": sum(map(len, names.values())),
        "sessions": sessions(root),
        "records": len(records),
        "bytes of records": sum(record.stat().st_size for record in records),
        "modules loaded by `from gradspec import verify`": int(printed(LOADED)),
        "calls of one check through `verify`": calls,
        "files of one check through `verify`": entered,
        "hops of one check through `verify`": hops,
    }
    return {"counts": counts, "circles": files}


def written(folder: Path) -> list[Path]:
    """Return the files of Python below a folder, none if there is no such folder."""
    return sorted(folder.rglob("*.py"))


def lines(files: Iterator[Path] | list[Path]) -> int:
    """Return how many lines files have together."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def rooms(graph: grimp.ImportGraph) -> set[tuple[str, str]]:
    """Return the pairs of rooms of which the first imports from the second."""
    pairs = ((a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a))
    found = {tuple(module.split(".")[1] for module in pair) for pair in pairs if all("." in m for m in pair)}
    return {(a, b) for a, b in found if a != b}


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Return the groups of files that can all reach one another by imports, of those within functions too."""
    return groups({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})


def groups(reached: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of more than one that can all reach one another, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(one: str) -> None:
        order[one] = low[one] = len(order)
        stack.append(one)
        for other in sorted(reached.get(one, ())):
            if other not in order:
                visit(other)
            if other in stack:
                low[one] = min(low[one], low[other])
        if low[one] == order[one]:
            group = stack[stack.index(one) :]
            del stack[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        for one in sorted(reached):
            if one not in order:
                visit(one)
    finally:
        sys.setrecursionlimit(limit)  # a caller may count on it
    return sorted(found)


def sessions(root: Path) -> int:
    """Return how many functions of the noxfile are sessions; one under several Pythons counts once."""
    tree = ast.parse((root / "noxfile.py").read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return sum(any("nox.session" in ast.unparse(mark) for mark in node.decorator_list) for node in functions)


def printed(program: str) -> str:
    """Return what a program prints that imports the gradspec of this process's path."""
    command = [sys.executable, "-P", "-c", program]
    return subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print the counts of a tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(), help="the tree; this folder unless told")
    options = parser.parse_args()
    root = options.root.resolve()
    sys.path.insert(0, str(root / "src"))
    os.environ |= {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    print(json.dumps(counted(root)))


if __name__ == "__main__":
    main()
