"""Measure the figures of the function pages: outputs, gradients, maps and Taylor remainders, a record each.

`python tests/figures/figure_record.py --out docs/records/figures`
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from function_curves import CURVES
from function_maps import MAPS
from taylor import taylor

from gradspec import FunctionSpec
from gradspec._provenance import provenance, source_of
from gradspec._seal import sealed
from gradspec.functions import FUNCTIONS
from gradspec.profile import load_profile
from gradspec.report import write_whole
from gradspec.source import fingerprint

#: The form of the record. It moves when a reader of the old form would misread the new one.
SCHEMA = 1
HERE = Path(__file__).resolve().parent
COMMAND = "python tests/figures/figure_record.py --out docs/records/figures"


def here_and_now() -> dict[str, Any]:
    """Return when and on what versions a run is made; once, before a written record changes the working tree."""
    known = provenance(load_profile("quick"), seed=0)
    kept = {key: known[key] for key in ("date", "commit", "gradspec", "torch", "python", "platform")}
    return {**kept, "device": "cpu", "command": COMMAND}


def measured(spec: FunctionSpec, folder: Path, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a function; the names of the scripts are relative to the folder where it will be."""
    remainder, slopes = taylor(spec)
    scripts = [HERE / name for name in ("figure_record.py", "function_curves.py", "function_maps.py", "taylor.py")]
    names = [Path(os.path.relpath(path, folder.resolve())).as_posix() for path in scripts]
    return {
        "schema": SCHEMA,
        "name": spec.name,
        "what": f"outputs and gradients of {spec.name} in float64, and its Taylor remainder",
        "provenance": dict(made),
        "numbers": {"slopes": slopes},
        "figures": {**CURVES[spec.name](), "taylor": remainder},
        "maps": MAPS.get(spec.name, dict)(),
        "sources": [
            asdict(source_of(*spec.modules)),
            {"package": "", "files": names, "hash": fingerprint(map(str, scripts), None)},
        ],
    }


def write(record: dict[str, Any], out: Path) -> None:
    """Write a record, all or nothing, each list of numbers on one line so that a diff can be read."""
    text = json.dumps(sealed(record), indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    write_whole(text + "\n", out)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the slopes, and write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the folder of the records; only printed without it")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    made = here_and_now()
    for spec in FUNCTIONS:
        record = measured(spec, options.out or Path(), made)
        said = ", ".join(f"{label} {slope:.2f}" for label, slope in record["numbers"]["slopes"].items())
        print(f"{spec.name}: slopes of the Taylor remainder: {said}")
        if options.out:
            write(record, options.out / f"{spec.name}.json")


if __name__ == "__main__":
    main()
