"""Measure the figures of the function pages: outputs, gradients, maps and Taylor remainders, a record each.

`python -m gradspec_lab.figures.figure_record --out docs/records/figures` measures all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gradspec import FunctionSpec
from gradspec.functions import FUNCTIONS
from gradspec.report import write_experiment
from gradspec_lab.figures.function_curves import CURVES
from gradspec_lab.figures.function_maps import MAPS
from gradspec_lab.figures.taylor import taylor

COMMAND = "python -m gradspec_lab.figures.figure_record --out docs/records/figures"


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the slopes, and write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the folder of the records; only printed without it")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for spec in (spec for spec in FUNCTIONS if spec.name in CURVES):
        record = measured(spec)
        said = ", ".join(f"{label} {slope:.2f}" for label, slope in record["numbers"]["slopes"].items())
        print(f"{spec.name}: slopes of the Taylor remainder: {said}")
        if options.out:
            write_experiment(record, options.out / f"{spec.name}.json", command=COMMAND)


if __name__ == "__main__":
    main()
