"""No less is measured than was: cases, wrong calls, examples, laws, directions and seeds have a floor each."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
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
#: What is counted for each spec, and how much of it a new spec has at least.
OF_SPECS = {"cases": 1, "misuses": 0, "examples": 1}
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


def wrong(found: Mapping[str, Mapping[str, int]], floors: Mapping[str, Mapping[str, int]] = FLOORS) -> list[str]:
    """Return a line for each thing of which there is less than its floor, or that has none and is not new."""
    of_specs = [floors[thing] for thing in OF_SPECS]
    known = {name for table in of_specs for name in table}
    lines = [
        f"{thing} of {name}: {found.get(thing, {}).get(name, 0)}, and the floor in tests/floors.toml is {floor}"
        for thing, table in floors.items()
        for name, floor in table.items()
        if thing != "specs" and found.get(thing, {}).get(name, 0) < floor
    ]
    for thing, counts in found.items():
        for name, count in counts.items():
            if thing in OF_SPECS and name not in known:  # a new spec
                lines += [f"{thing} of {name}: {count}, one at least"] if count < OF_SPECS[thing] else []
            elif name not in floors[thing]:
                lines.append(f"{thing} of {name}: {count}, without a floor in tests/floors.toml")
    held = Counter(name.partition(" ")[0] for name in known)
    return lines + [
        f"{held[kind]} specs of kind {kind} have floors in tests/floors.toml, which counts {count} of them"
        for kind, count in floors["specs"].items()
        if held[kind] != count
    ]


def test_there_is_as_much_as_there_was() -> None:
    assert wrong(counted()) == []


def test_who_adds_a_law_raises_the_floor() -> None:
    assert counted()["laws"] == FLOORS["laws"]  # else the next law that is lost is not noticed


@pytest.mark.parametrize("thing", [thing for thing in FLOORS if thing != "specs"])
def test_less_of_it_is_said_and_so_is_a_missing_floor(thing: str) -> None:
    found = {name: dict(counts) for name, counts in counted().items()}
    first, second = [*FLOORS[thing], ""][:2]
    found[thing][first] = FLOORS[thing][first] - 1
    floors = {
        name: {one: floor for one, floor in table.items() if (name, one) != (thing, second)}
        for name, table in FLOORS.items()
    }
    assert wrong(found, floors) == [
        f"{thing} of {first}: {FLOORS[thing][first] - 1}, and the floor in tests/floors.toml is {FLOORS[thing][first]}",
        *([f"{thing} of {second}: {found[thing][second]}, without a floor in tests/floors.toml"] if second else []),
    ]


def test_a_new_spec_needs_no_floor_and_has_a_case_and_an_example() -> None:
    found = {name: dict(counts) for name, counts in counted().items()}
    found["cases"]["function new"], found["misuses"]["function new"], found["examples"]["function new"] = 1, 0, 1
    assert wrong(found) == []
    found["examples"]["function new"] = 0
    assert wrong(found) == ["examples of function new: 0, one at least"]


def test_a_spec_that_loses_all_its_floors_is_no_new_one() -> None:
    gone = "function grad_factor"
    floors = {thing: {name: floor for name, floor in table.items() if name != gone} for thing, table in FLOORS.items()}
    count = FLOORS["specs"]["function"]
    assert wrong(counted(), floors) == [
        f"{count - 1} specs of kind function have floors in tests/floors.toml, which counts {count} of them"
    ]
