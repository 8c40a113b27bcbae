"""A record only grows: random sequences of runs, held to a model of what must be in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from gradspec._engine._reuse import grown
from gradspec._record import Cell, Source, write
from gradspec.law import Finding, Status, Verdict
from gradspec.report import Report, read_records, records_to_json

SPECS, LAWS, CASES = ("a", "b"), ("primal", "vjp"), ("one", "two")
CELLS = [(spec, law, case) for spec in SPECS for law in LAWS for case in CASES]


def report(seed: int, keys: dict[str, str], said: dict[Cell, str], missing: Sequence[Cell]) -> Report:
    """Return the report of a run that asked for some cells and measured a part of them."""
    names = sorted({cell[0] for cell in (*said, *missing)})
    return Report(
        provenance={"seed": seed, "torch": "2", "profile": {"name": "quick", "laws": []}},
        sheets={name: {"kind": "function"} for name in names},
        laws={law: {"over": "cases", "requires": [], "explained_by": [], "family": "x"} for law in LAWS},
        sources={f"spec {name}": Source(roots=(name,), key=keys[name]) for name in names}
        | {f"law {law}": Source(roots=(law,), key="law") for law in LAWS},
        verdicts=tuple(
            Verdict(spec=cell[0], law=cell[1], case=cell[2], finding=Finding(status=Status.HOLDS, message=text))
            for cell, text in said.items()
        ),
        missing=tuple(missing),
    )


@dataclass
class Model:
    """What must be in the file for one seed."""

    said: dict[Cell, tuple[str, str]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    asked: set[Cell] = field(default_factory=set)

    def run(self, keys: dict[str, str], asked: Sequence[Cell], said: dict[Cell, str]) -> None:
        self.asked |= set(asked)
        self.keys |= {cell[0]: keys[cell[0]] for cell in asked}
        self.said |= {cell: (keys[cell[0]], text) for cell, text in said.items()}

    def holds(self, found: Report) -> None:
        cells = {(v.spec, v.law, v.case): v.finding.message for v in found.verdicts}
        assert cells == {cell: text for cell, (_, text) in self.said.items()}
        assert set(found.missing) == self.asked - set(cells)
        assert set(found.older) == {cell for cell, (key, _) in self.said.items() if key != self.keys[cell[0]]}
        assert bool(found.incomplete) == bool(found.missing or found.older)


@pytest.mark.parametrize("number", range(100))
def test_a_random_sequence_of_runs_loses_nothing(number: int, tmp_path: Path) -> None:
    random, path = Random(number), tmp_path / "record.json"
    models: dict[int, Model] = {}
    keys = dict.fromkeys(SPECS, "0")
    for step in range(random.randrange(2, 12)):
        if random.random() < 0.3:
            keys[random.choice(SPECS)] = str(step)  # an edit, or one that is taken back
        seed, spec = random.randrange(2), random.choice(SPECS)
        laws = random.choice([LAWS, LAWS[:1], LAWS[1:]])
        asked = [cell for cell in CELLS if cell[0] == spec and cell[1] in laws]
        measured = asked[: random.choice([0, 1, len(asked), len(asked)])]  # interrupted, a shard, whole
        said = dict.fromkeys(measured, f"{step}")
        models.setdefault(seed, Model()).run(keys, asked, said)
        there = read_records(path) if path.exists() else ()
        new = report(seed, keys, said, [cell for cell in asked if cell not in said])
        write(records_to_json(grown(there, new)), path)
        found = {one.provenance["seed"]: one for one in read_records(path)}
        assert set(found) == set(models)
        for of_seed, model in models.items():
            model.holds(found[of_seed])
