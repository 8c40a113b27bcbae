"""The committed summary of the campaign: a row for each function, the counts, and the first run."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, provenance, read, to_text
from gradspec_lab.campaigns.packages._run import MEASURED

KIND = "campaign"
AGAIN = "python -m gradspec_lab campaign"
CLASSES = Path(__file__).parent / "classes.toml"
MENDED = Path(__file__).parent / "mended.toml"
PROOFS = Path(__file__).parent / "proofs"
#: How much is kept of the words of a finding.
WORDS = 60
#: How most findings begin.
NO_DERIVATIVE = "backward does not apply the derivative of what forward computes: "
#: What a finding in training is, as a person read it in the source and a proof shows it.
WRONG = "wrong"
DOCUMENTED = "deliberate and documented"
UNDOCUMENTED = "deliberate and undocumented"
HARMLESS = "harmless"
FALSE = "false"
KINDS = (WRONG, DOCUMENTED, UNDOCUMENTED, HARMLESS, FALSE)
#: How dangerous a wrong gradient is, the most dangerous first.
DIRECTION = "a wrong direction"
SOME_USES = "wrong in some uses"
SIDE_EFFECT = "a side effect"
DANGERS = (DIRECTION, SOME_USES, SIDE_EFFECT)
WRONG_IN_TRAINING = ("wrong silently", "refused with an error")


def classes(path: Path = CLASSES) -> dict[str, dict[str, Any]]:
    """Return what was said by hand of each function: its class, why, the proof, and of a wrong one how dangerous it is.

    Raises:
        ValueError: a class does not exist, or something is missing.
    """
    found = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name, row in found.items():
        if row.get("class") not in KINDS or not row.get("why"):
            raise ValueError(f"{name}: write a class, one of {', '.join(KINDS)}, and why")
        if (row["class"] == WRONG) != (row.get("danger") in DANGERS):
            raise ValueError(f"{name}: write a danger of what is wrong, one of {', '.join(DANGERS)}")
    return found


def needs_a_class(row: Mapping[str, Any]) -> bool:
    """Whether training with a function is said to be wrong or refused."""
    return row["training"] in WRONG_IN_TRAINING


def summary(results: Sequence[Mapping[str, Any]], known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the summary of what was measured.

    Args:
        results: of each package.
        known: the last summary. Its first runs and the packages that are not measured here are kept, each with its
            commit; packages that it has not measured make another first run.
    """
    said = classes()
    mine = [_package(one, said) for one in results]
    measured_here = {one["name"] for one in mine}
    rows = [*mine, *(one for one in (known or {}).get("packages", ()) if one["name"] not in measured_here)]
    counted = counts(rows)
    facts = {
        key: value
        for key, value in provenance().items()
        if key in ("date", "commit", "gradspec", "torch", "python", "platform")
    }
    first = [*(known or {}).get("first_runs", ())]
    before = {one["name"] for one in (known or {}).get("packages", ()) if one["status"] == MEASURED}
    new = [one for one in mine if one["name"] not in before]
    if _measured(new):
        first.append({"date": facts["date"], "commit": facts["commit"], **counts(new), "names": _measured(new)})
    mended = [row["kind"] for row in tomllib.loads(MENDED.read_text(encoding="utf-8")).values()]
    head = {"name": KIND, "provenance": facts, "counts": counted, "first_runs": first, "mended_since": mended}
    return {**head, "packages": rows}


def _measured(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [row["name"] for row in rows if row["status"] == MEASURED]


def _package(result: Mapping[str, Any], said: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    facts = {name: result[name] for name in ("name", "version", "domain", "status")}
    if result["status"] != MEASURED:
        return {**facts, "why": result["why"], "functions": []}
    return {
        **facts,
        "commit": result["provenance"]["commit"],
        "functions": [_function(r, said) for r in result["functions"]],
    }


def _function(row: Mapping[str, Any], said: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "function": row["function"],
        "training": row["training"],
    }
    inside = [one for one in row["findings"] if one["scope"] == "training"]
    if row["training"] == "not audited":
        found["why"] = row["why"][:WORDS]
    elif inside and row["training"] not in ("nothing found", "a question"):
        found["first"] = _first(next(one for one in inside if one["rank"] == row["training"]))
    if needs_a_class(row):
        found["class"] = said.get(row["function"], {}).get("class", "")
    return found


def _first(one: Mapping[str, Any]) -> dict[str, Any]:
    shown = {key: one[key].partition(" ")[0] for key in ("got", "expected") if one.get(key)}
    says = one["says"].partition(", wrong silently: ")[2] or one["says"]
    return {"laws": one["laws"][:3], "says": says.removeprefix(NO_DERIVATIVE)[:WORDS], **shown}


def counts(packages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many packages and functions there are, by what training says of them and by class."""
    packages = list(packages)
    rows = [row for one in packages for row in one["functions"]]
    seen = {row["function"]: row for row in rows}
    classed = Counter(row["class"] or "not classed" for row in seen.values() if "class" in row)
    return {
        "packages": sum(one["status"] == MEASURED for one in packages),
        "not_measured": sum(one["status"] != MEASURED for one in packages),
        "functions": len(seen),
        "training": dict(Counter(row["training"] for row in seen.values()).most_common()),
        "classes": {name: classed[name] for name in (*KINDS, "not classed") if classed[name]},
    }


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return what training says otherwise than in an earlier summary, a line each."""
    before, now = (
        {(p["name"], row["function"]): row["training"] for p in one["packages"] for row in p["functions"]}
        for one in (old, new)
    )
    return [
        f"{key[1]}: {before.get(key, 'not seen')}, now {now.get(key, 'not seen')}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key)
    ]


def summary_text(content: Mapping[str, Any]) -> str:
    """Return a summary as JSON, a line for each package."""
    return to_text(KIND, content, rows="packages")


def read_campaign(path: Path) -> dict[str, Any]:
    """Return what a summary holds.

    Raises:
        RecordError: it cannot be read or was edited, or its counts are not those of its rows.
    """
    data = read(path, KIND, again=AGAIN)
    if data["counts"] != counts(data["packages"]):
        raise RecordError(f"{path}: its counts are not those of its rows: {AGAIN}")
    return data
