"""The gallery: what the truth about published functions shows, without what is meant so. The page derives it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradspec_lab.audits.audit_record import HOME, command
from gradspec_lab.audits.report_table import REPOSITORIES
from gradspec_lab.audits.truth_answers import QUESTIONS, SILENT, answers
from gradspec_lab.audits.truth_table import DELIBERATE, PUBLISHED

KIND = "gallery"
TRUTH = Path(__file__).parents[3] / "tests" / "lab" / "audits" / "published" / "truth.json"
#: The most dangerous first: a rank, and what is asked in it, in words that go on with the measured value.
RANKS: Mapping[str, Mapping[str, str]] = {
    "training": {
        "first": "The gradient is not the derivative of the output:",
        "linear": "Backward is not linear in the cotangent: for a sum it is off by",
        "ignored argument": "The output depends on an argument that gets no gradient:",
        "one gradient alone": "A gradient that is asked for by itself",
        "writes to an argument": "The call",
        "writes to a cotangent": "Backward",
        "noise in backward": "A second backward pass gives another gradient:",
        "shared memory": "The output shares memory, and autograd does not know:",
    },
    "second": {"second": "A second derivative is"},
    "dtype": {
        "dtype of the output": "The output is",
        "dtype of the gradient": "Backward returns another dtype than its argument has, by its place:",
    },
    "transforms": {
        "compiled func.grad": "`torch.func.grad` under `torch.compile`",
        "compiled vmap": "`torch.vmap` under `torch.compile`",
        "compiled func.jvp": "`torch.func.jvp` under `torch.compile`",
        "export": "`torch.export`",
    },
}
#: What else is meant so: each read in the source, which says it by its name, its docstring or its formula.
MEANT: Mapping[str, Mapping[str, str]] = {
    "brevitas:InplaceTensorClampSteFn": {"writes to an argument": "it works in place, and its name says so"},
    "megatron_core:MakeViewlessTensor": {
        "shared memory": "the docstring: a tensor on the same memory that is not a view"
    },
    "pytorch_toolbelt:ComputeNormalization": dict.fromkeys(
        ("first", "second"), "backward is the derivative of the limit that the iterations of forward approach"
    ),
    "snntorch:StochasticSpikeOperator": {
        "noise in backward": "the docstring: below the threshold the gradient is drawn"
    },
}


def row(truth: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page says of one function."""
    found = answers(truth)
    audited = next(a for a in PUBLISHED if a.name == truth["name"])
    meant = {**DELIBERATE.get(audited.name, {}), **MEANT.get(audited.name, {})}
    wrong = [
        {"rank": rank, "what": what, "measured": measured(found[question].text), "laws": list(QUESTIONS[question].laws)}
        for rank, questions in RANKS.items()
        for question, what in questions.items()
        if question in found and found[question].silent and question not in meant
    ]
    return {
        "name": audited.name,
        "package": audited.package,
        "version": audited.version,
        "class": audited.target.rpartition(":")[2],
        "reproduce": [
            f"python -m pip install --no-deps --target {HOME} {audited.package}=={audited.version}",
            shlex.join([f"PYTHONPATH={HOME}", *command(audited, HOME)]),
        ],
        "report": f"{REPOSITORIES[audited.package]}/issues",
        "found": wrong,
        "deliberate": list(dict.fromkeys(meant.values())),
    }


def measured(text: str) -> str:
    """Return the silent parts of an answer, each once: "None, and not 0.36"."""
    parts = [part for part in text.split("; ") if part.startswith(SILENT)]
    shown = dict.fromkeys(re.sub("^(wrong|no|ignored|missing): ", "", part) for part in parts)
    return "; ".join(shown).replace("forward: new values", "new values").replace("backward: new values", "new values")


def gallery(truth: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows, the most dangerous first, and what the truth was measured with."""
    rows = [row(one) for one in truth["functions"]]
    order = list(RANKS)
    rows.sort(key=lambda one: (min((order.index(f["rank"]) for f in one["found"]), default=len(order)), one["name"]))
    measured_with = {key: truth["provenance"][key] for key in ("torch", "python")}
    return {"name": KIND, "measured_with": measured_with, "functions": rows}
