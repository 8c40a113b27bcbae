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
#: What a finding in training is, as a person read it in the source and a proof shows it.
WRONG = "wrong"
DOCUMENTED = "deliberate and documented"
UNDOCUMENTED = "deliberate and undocumented"
HARMLESS = "harmless"
FALSE = "false"
KINDS = (WRONG, DOCUMENTED, UNDOCUMENTED, HARMLESS, FALSE)
WRONG_IN_TRAINING = ("wrong silently", "refused with an error")


def classes(path: Path = CLASSES) -> dict[str, dict[str, Any]]:
    """Return what was said by hand of each function: its class, why, and the proof.

    Raises:
        ValueError: a class does not exist, or something is missing.
    """
    found = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name, row in found.items():
        if row.get("class") not in KINDS or not row.get("why"):
            raise ValueError(f"{name}: write a class, one of {', '.join(KINDS)}, and why")
    return found


def needs_a_class(row: Mapping[str, Any]) -> bool:
    """Whether training with a function is said to be wrong or refused."""
    return row["training"] in WRONG_IN_TRAINING


def summary(results: Sequence[Mapping[str, Any]], known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the summary of what was measured.

    Args:
        results: of each package.
        known: the last summary: the first run is taken from it.
    """
    said = classes()
    rows = [_package(one, said) for one in results]
    counted = counts(rows)
    facts = {
        key: value
        for key, value in provenance().items()
        if key in ("date", "commit", "gradspec", "torch", "python", "platform")
    }
    first = (known or {}).get("first_run") or {"date": facts["date"], "commit": facts["commit"], **counted}
    mended = [row["kind"] for row in tomllib.loads(MENDED.read_text(encoding="utf-8")).values()]
    head = {"name": KIND, "provenance": facts, "counts": counted, "first_run": first, "mended_since": mended}
    return {**head, "packages": rows}


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
    found: dict[str, Any] = {"function": row["function"], "calls": row["kinds"][:1], "training": row["training"]}
    inside = [one for one in row["findings"] if one["scope"] == "training"]
    if row["training"] == "not audited":
        found["why"] = row["why"][:200]
    elif inside and row["training"] != "nothing found":
        found["first"] = _first(next(one for one in inside if one["rank"] == row["training"]))
    outside: dict[str, list[str]] = {}
    for one in row["findings"]:
        if one["scope"] != "training" and one["rank"] != "a question":
            outside.setdefault(f"{one['scope']}: {one['rank']}", []).extend(one["laws"])
    if outside:
        found["outside"] = {name: list(dict.fromkeys(laws)) for name, laws in outside.items()}
    if needs_a_class(row):
        found["class"] = said.get(row["function"], {}).get("class", "")
    return found


def _first(one: Mapping[str, Any]) -> dict[str, Any]:
    if one["rank"] == "a question":
        return {"says": one["says"].partition("?")[0] + "?"}
    shown = {key: one[key] for key in ("got", "expected", "index") if one.get(key)}
    return {"laws": one["laws"], "says": one["says"][:240], **shown}


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
