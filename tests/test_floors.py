"""No less is measured than was: cases, wrong calls, examples, laws, directions and seeds have a floor each."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from gradspec._engine._plan import misuses
from gradspec.functions import FUNCTIONS
from gradspec.laws import LAWS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.profile import available, load_profile
from gradspec.spec import Spec
from gradspec.spec._kinds import kinds, maker_of
from gradspec.text import TEXTS

ROOT = Path(__file__).parents[1]
FLOORS = tomllib.loads((Path(__file__).parent / "floors.toml").read_text(encoding="utf-8"))
SPECS: tuple[Spec, ...] = (*FUNCTIONS, *OPERATORS, *MODULES, *TEXTS)


def counted() -> Mapping[str, Mapping[str, int]]:
    """Return how much of each thing there is."""
    named = {f"{spec.kind} {spec.name}": (spec, maker_of(spec.kind)(0, "cpu")) for spec in SPECS}
    seeds = json.loads((ROOT / "docs" / "records" / "seeds.json").read_text(encoding="utf-8"))
    return {
        "laws": {kind.name: sum(law.judges(kind.name) for law in LAWS) for kind in kinds()},
        "cases": {name: len(list(spec.cases(make))) for name, (spec, make) in named.items()},
        "misuses": {name: len(list(misuses(spec, make))) for name, (spec, make) in named.items()},
        "examples": {name: len(spec.documented) for name, (spec, _) in named.items()},
        "directions": {name: load_profile(name).directions for name in available()},
        "seeds": {"run": seeds["swept"]["run"]},
    }


def wrong(found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a line for each thing of which there is less than its floor, or that has none."""
    return [
        f"{thing} of {name}: {found.get(thing, {}).get(name, 0)}, and the floor in tests/floors.toml is {floor}"
        for thing, floors in FLOORS.items()
        for name, floor in floors.items()
        if found.get(thing, {}).get(name, 0) < floor
    ] + [
        f"{thing} of {name}: {count}, without a floor in tests/floors.toml"
        for thing, counts in found.items()
        for name, count in counts.items()
        if name not in FLOORS[thing]
    ]


def test_there_is_as_much_as_there_was() -> None:
    assert wrong(counted()) == []


@pytest.mark.parametrize("thing", FLOORS)
def test_less_of_it_is_said_and_so_is_a_missing_floor(thing: str) -> None:
    found = {name: dict(counts) for name, counts in counted().items()}
    first = next(iter(found[thing]))
    found[thing][first] = FLOORS[thing][first] - 1
    found[thing]["new"] = 1
    assert wrong(found) == [
        f"{thing} of {first}: {FLOORS[thing][first] - 1}, and the floor in tests/floors.toml is {FLOORS[thing][first]}",
        f"{thing} of new: 1, without a floor in tests/floors.toml",
    ]
