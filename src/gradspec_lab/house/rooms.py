"""Print the rooms of the house and what runs between them: arrows, arrows back up, circles.

A room is a module or a package directly in `gradspec`, or in a room that has layers of its own; `--in text` looks at
the rooms of that one alone. The layers are those of import-linter's contracts in pyproject.toml. An arrow is an import
from one room into another; one that only types need does not count.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grimp


def layers_in(pyproject: Path) -> dict[str, list[list[str]]]:
    """Return for each package with layers these layers, the highest first, each with its rooms."""
    contracts = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    found = {}
    for contract in contracts:
        for package in contract.get("containers", ["gradspec"]) if contract["type"] == "layers" else ():
            lines = [layer.replace(":", "|").split("|") for layer in contract["layers"]]
            found[package] = [[room.strip().removeprefix(f"{package}.") for room in rooms] for rooms in lines]
    return found


def arrows_of(graph: grimp.ImportGraph, package: str) -> Counter[tuple[str, str]]:
    """Return how many imports run from each room of a package into each other one."""

    def room(module: str) -> str:
        return module.removeprefix(f"{package}.").partition(".")[0]

    inside = [module for module in graph.modules if module.startswith(f"{package}.")]
    pairs = ((a, b) for a in inside for b in graph.find_modules_directly_imported_by(a) if b in inside)
    return Counter((room(a), room(b)) for a, b in pairs if room(a) != room(b))


def circles_of(arrows: Counter[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield each group of rooms that can all reach one another."""
    rooms = sorted({room for arrow in arrows for room in arrow})
    reached = {room: {b for a, b in arrows if a == room} for room in rooms}
    for _ in rooms:
        reached = {room: found.union(*(reached[other] for other in found)) for room, found in reached.items()}
    groups = {tuple(o for o in rooms if o in reached[r] and r in reached[o]) for r in rooms if r in reached[r]}
    yield from (list(group) for group in sorted(groups))


def show(graph: grimp.ImportGraph, package: str, layers: list[list[str]], *, every: bool) -> bool:
    """Print the rooms of a package, and return whether no arrow runs back up or in a circle.

    Args:
        graph: all modules of the packages.
        package: the one whose rooms are shown.
        layers: its layers, the highest first.
        every: whether each arrow is listed.
    """
    rooms, arrows = sorted(graph.find_children(package)), arrows_of(graph, package)
    circles = list(circles_of(arrows))
    height = {room: len(layers) - i for i, layer in enumerate(layers) for room in layer}
    up = [(a, b) for a, b in sorted(arrows) if height.get(b, 0) > height.get(a, 0) > 0]
    level = [(a, b) for a, b in sorted(arrows) if height.get(b, 0) == height.get(a, 0) > 0]
    packages = sum(bool(graph.find_children(room)) for room in rooms)
    print(f"{package}: {len(rooms)} rooms ({packages} packages), {len(layers)} layers")
    for layer in layers:
        print(f"  {'  '.join(layer)}")
    print(f"{len(arrows)} arrows between rooms, of {sum(arrows.values())} imports")
    for (a, b), number in sorted(arrows.items()) if every else ():
        print(f"  {a} -> {b} ({number})")
    print(f"{len(up)} back up, {len(level)} within a layer, {len(circles)} circles")
    for line in [*(f"  {a} -> {b}" for a, b in (*up, *level)), *(f"  {' - '.join(c)}" for c in circles)]:
        print(line)
    return not (up or circles)


def main() -> None:
    """Print what stands and what runs; exit with 1 if an arrow runs back up or in a circle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in", dest="room", help="the one room whose rooms are shown, `sphinx_ext` say")
    parser.add_argument("--root", type=Path, default=Path(), help="the tree to look at; this folder unless told")
    parser.add_argument("--arrows", action="store_true", help="list each arrow, with its number of imports")
    options = parser.parse_args()
    sys.path.insert(0, str(options.root / "src"))
    layers = layers_in(options.root / "pyproject.toml")
    packages = sorted({"gradspec", *(package.partition(".")[0] for package in layers)})
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)
    shown = layers if options.room is None else [".".join(filter(None, ["gradspec", options.room]))]
    sound = [show(graph, package, layers.get(package, []), every=options.arrows) for package in shown]
    sys.exit(0 if all(sound) else 1)


if __name__ == "__main__":
    main()
