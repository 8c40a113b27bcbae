"""Measure the figures of the function pages: outputs, gradients, maps and Taylor remainders, a record each.

`python -m gradspec_lab.figures.figure_record --out docs/records/figures` measures those of which the source has
changed; `--fresh` measures all.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gradspec import FunctionSpec
from gradspec._record import (
    RecordError,
    Source,
    experiment_sources,
    experiment_text,
    read_experiment,
    roots_of,
    write,
)
from gradspec.functions import FUNCTIONS
from gradspec_lab.figures.function_curves import CURVES
from gradspec_lab.figures.function_maps import MAPS
from gradspec_lab.figures.taylor import taylor

COMMAND = "python -m gradspec_lab.figures.figure_record --out docs/records/figures"
HERE = "src/gradspec_lab/figures/figure_record.py:measured"


def measured(spec: FunctionSpec) -> dict[str, Any]:
    """Return what the record of a function holds."""
    remainder, slopes = taylor(spec)
    return {
        "name": spec.name,
        "what": f"outputs and gradients of {spec.name} in float64, and its Taylor remainder",
        "numbers": {"slopes": slopes},
        "figures": {**CURVES[spec.name](), "taylor": remainder},
        "maps": MAPS.get(spec.name, dict)(),
    }


def sources(spec: FunctionSpec) -> dict[str, Source]:
    """Return what the record of a function stands on."""
    return {"experiment": Source.of(*roots_of(spec.modules), HERE)}


def is_current(path: Path, today: Mapping[str, Source]) -> bool:
    """Whether a record is of today's source."""
    try:
        return path.exists() and today["experiment"].agrees(experiment_sources(read_experiment(path)).get("experiment"))
    except RecordError:
        return False


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the slopes, and write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the folder of the records; only printed without it")
    parser.add_argument("--fresh", action="store_true", help="measure all, whatever the records hold")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for spec in (spec for spec in FUNCTIONS if spec.name in CURVES):
        stands_on = sources(spec)
        if options.out and not options.fresh and is_current(options.out / f"{spec.name}.json", stands_on):
            print(f"{spec.name}: current")
            continue
        record = measured(spec)
        said = ", ".join(f"{label} {slope:.2f}" for label, slope in record["numbers"]["slopes"].items())
        print(f"{spec.name}: slopes of the Taylor remainder: {said}")
        if options.out:
            write(experiment_text(record, stands_on, command=COMMAND), options.out / f"{spec.name}.json")


if __name__ == "__main__":
    main()
