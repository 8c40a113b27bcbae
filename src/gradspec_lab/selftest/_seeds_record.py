"""The results of many seeds, as plain data: a command writes and continues them, and a page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, read, to_text

SEEDS = "seeds"


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """What sound functions and diseased ones got under many seeds."""

    #: Date, commit, versions, device and profile.
    provenance: Mapping[str, Any]
    #: What `sweep` returned, and as `diseased` what `sweep_diseased` did, without their rows.
    swept: Mapping[str, Any]
    #: The same by case, and by diseased specimen; the committed record, which only a page reads, has none.
    rows: tuple[Mapping[str, Any], ...] = ()
    #: How many of them this run has measured; not part of the record.
    measured: int = field(default=0, compare=False)

    def to_json(self) -> str:
        """Return it as JSON, a line for each case and specimen."""
        content = {
            "provenance": dict(self.provenance),
            "swept": dict(self.swept),
            **({"rows": [dict(row) for row in self.rows]} if self.rows else {}),
        }
        return to_text(SEEDS, content, rows="rows")


def read_seeds(path: Path) -> Seeds:
    """Return what a file holds of many seeds.

    Raises:
        RecordError: the file cannot be read, or does not hold a record of this version.
    """
    data = read(path, SEEDS, again="make it again with `python -m gradspec_lab selftest --seeds N --record`")
    try:
        found = Seeds(provenance=data["provenance"], swept=data["swept"], rows=tuple(data.get("rows", ())))
        if not _adds_up(found.swept, found.rows):
            raise ValueError("its total is not the sum of its rows")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"{path} holds no seeds ({type(error).__name__}: {error})") from None
    return found


def _adds_up(swept: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bool:
    if swept["verdicts"] != sum(swept["by_law"].values()):
        return False
    if not rows:
        return True
    cases, specimens = ([row for row in rows if what in row] for what in ("case", "specimen"))
    sick = swept["diseased"]
    return (
        swept["verdicts"] == sum(row["verdicts"] for row in cases)
        and len(swept["failures"]) == sum(len(row.get("failures", ())) for row in cases)
        and sick["asked"] == sum(row["asked"] for row in specimens)
        and len(sick["missed"]) == sum(len(row.get("missed", ())) for row in specimens)
        and (swept["tried"], sick["tried"]) == (len(cases), len(specimens))
    )
