"""Measure what is true of the published functions, without gradspec's engine, and write it to a record.

    python -m gradspec_lab.audits.truth --site FOLDER [--only NAME] [--question NAME] [--out FILE]

With --only or --question, the rest of the record stays, and each row that is asked again says when and with what.
FOLDER is where pip put the packages of the table. Each function is measured in a process of its own, forked from this
one, which has imported torch and its compiler.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gradspec._record import provenance, read_experiment, update_experiment, write_experiment
from gradspec_lab.audits.audit_table import Audited
from gradspec_lab.audits.truth_table import PUBLISHED

OUT = Path(__file__).parents[3] / "tests" / "lab" / "audits" / "published" / "truth.json"
HEAD = {"name": "truth", "what": "what is true of published functions, measured without gradspec"}


def measured(audited: Audited, site: Path, only: Sequence[str] = ()) -> dict[str, Any]:
    """Return the answers for one function, to all questions or to some; in the process that calls it."""
    import torch

    from gradspec_lab.audits.truths import derivatives, effects, inputs, transforms
    from gradspec_lab.audits.truths._call import Call, arguments, load, said

    torch.set_num_threads(1)
    call = Call(load(audited.target, site), arguments(audited.case))
    try:
        call.gradients()
        plain = "works"
    except Exception as error:
        plain = said(error)
    row = {"name": audited.name, "package": audited.package, "version": audited.version}
    row |= {"target": audited.target, "case": audited.case, "plain": plain}
    questions = {
        "first": derivatives.first,
        "second": derivatives.second,
        "penalty": lambda c: derivatives.second(c, penalty=True),
        "linear": derivatives.linear,
        "writes": effects.writes,
        "shares": effects.shares,
        "draws": effects.draws,
        "kept": effects.kept,
        "layout": inputs.layout,
        "cotangent layout": inputs.cotangent_layout,
        "retained": inputs.retained,
        "alone": inputs.alone,
        "dtypes": inputs.dtypes,
        "edges": inputs.edges,
        "checkpoint": inputs.checkpoint,
        "autocast": inputs.autocast,
        "transforms": transforms.answers,
        "exports": transforms.exports,
        "batched": inputs.batched,
    }
    if plain != "works":
        return row
    noisy = any(said != "no" for said in effects.draws(call).values())
    for name, ask in questions.items():
        if only and name not in only:
            continue
        if noisy and name in ("layout", "autocast"):
            row[name] = "not measured: another layout or dtype draws another noise"
            continue
        try:
            row[name] = ask(call)
        except Exception as error:
            row[name] = said(error)
    return row


def _alone(audited: Audited, site: Path, only: Sequence[str], pipe: Any) -> None:
    sys.path.insert(0, str(site))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    pipe.send(measured(audited, site, only))


def row(audited: Audited, site: Path, only: Sequence[str] = ()) -> dict[str, Any]:
    """Return the answers for one function, measured in a new process."""
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_alone, args=(audited, site, only, theirs))
    process.start()
    theirs.close()
    try:
        found = mine.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"measuring {audited.name} ended with {process.exitcode}") from None
    process.join()
    print(f"{audited.name}: {found['plain']}", flush=True)
    return found


def main() -> None:
    """Measure the functions of the table."""
    for name in ("torch._dynamo", "torch.export"):  # once, before the processes are forked
        importlib.import_module(name)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, required=True, help="the folder that pip installed the packages into")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write the record")
    parser.add_argument("--only", action="append", help="a function; the others stay as the record has them")
    parser.add_argument("--question", action="append", help="ask this; the other answers stay as the record has them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many functions at a time")
    options = parser.parse_args()
    kept = read_experiment(options.out) if options.only or options.question else {}
    known = {row["name"]: row for row in kept.get("functions", ())}
    again = {"provenance": provenance(asked=options.question or "all")} if kept else {}

    def one(audited: Audited) -> dict[str, Any]:
        before = known.get(audited.name, {})
        if options.only and audited.name not in options.only:
            return before
        return {**(before if options.question else {}), **row(audited, options.site, options.question or ()), **again}

    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(one, PUBLISHED))
    if kept:
        update_experiment(kept | {"functions": rows}, options.out)
    else:
        write_experiment({**HEAD, "functions": rows}, options.out)


if __name__ == "__main__":
    main()
