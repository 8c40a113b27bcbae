"""Search for a call, a composition of transforms or a graph on which a function of ours is not its reference.

It runs the search of tests/fuzz, more of it and with a seed, and writes the record docs/records/fuzz.json.
`nox -s lab -- fuzz` runs the same search as tests.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))

from fuzz import replay  # noqa: E402 - after the line above
from fuzz.makers import MAKERS  # noqa: E402 - likewise
from fuzz.search import search  # noqa: E402 - likewise
from gradspec.functions import FUNCTIONS  # noqa: E402 - likewise
from gradspec.report import write_experiment  # noqa: E402 - likewise

AGREED = ("values", "both raise", "refused as declared", "torch has no derivative of the reference")


def of_function(spec: Any, count: int, seed: int) -> dict[str, Any]:
    """Return what was tried of a function; the search of one ends at the first discrepancy."""
    counts: Counter[str] = Counter()
    how: Counter[str] = Counter()
    began, found = time.monotonic(), ""
    try:
        search(spec, count, counts=counts, how=how, start=seed)
    except AssertionError as error:
        found = str(error)
    return {
        "name": spec.name,
        "examples": counts.total(),
        "seconds": round(time.monotonic() - began),
        **{name.replace(" ", "_"): how[name] for name in AGREED},
        "compositions": len(counts),
        "discrepancies": [found] if found else [],
        "by_composition": dict(sorted(counts.items())),
    }


def of_programs(count: int, seed: int) -> dict[str, Any]:
    """Return what was tried of random graphs."""
    counts: Counter[str] = Counter()
    began = time.monotonic()
    found = [said for number in range(seed, seed + count) if (said := replay.difference(number, counts))]
    seconds = round(time.monotonic() - began)
    ends = dict(counts.most_common())
    return {"programs": count, "first_seed": seed, "seconds": seconds, "ends": ends, "discrepancies": found}


def main() -> None:
    """Search, print what was found, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=10_000, help="of each function; 10,000 unless told")
    parser.add_argument("--programs", type=int, default=10_000, help="random graphs; 10,000 unless told")
    parser.add_argument("--seed", type=int, default=0, help="of the search; 0 unless told")
    parser.add_argument("--out", type=Path, help="where to write the record")
    options = parser.parse_args()
    torch.set_num_threads(1)
    functions = []
    for spec in (spec for spec in FUNCTIONS if spec.name in MAKERS):
        functions.append(of_function(spec, options.examples, options.seed))
        print({name: value for name, value in functions[-1].items() if name != "by_composition"}, flush=True)
    graphs = of_programs(options.programs, options.seed)
    print(graphs, flush=True)
    total = sum(len(row["discrepancies"]) for row in (*functions, graphs))
    composed = set().union(*(row.pop("by_composition") for row in functions))
    if options.out:
        content = {
            "name": "fuzz",
            "what": "each function against its reference by construction, behind transforms and in random graphs",
            "examples": sum(row["examples"] for row in functions),
            "compositions": len(composed),
            "discrepancies": total,
            "functions": functions,
            "graphs": graphs,
        }
        how = {"command": "python -m gradspec_lab.campaigns.fuzz_record", "seed": options.seed}
        # Not this script: what it takes from tests/fuzz is found only where that is on the path.
        write_experiment(content, options.out, **how)
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
