"""`python -m gradspec._watch._alone FOLDER SEED`: the audit of one function that another process saw."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gradspec._audit._saved_call import load_call
from gradspec._watch._audits import audit_into
from gradspec._watch._handed import taken_over
from gradspec._watch._importing import registered, resolved
from gradspec._watch._kept import Kept, text_of
from gradspec._watch._row import Row
from gradspec._watch._seen import Seen
from gradspec._watch._store import FUNCTION


def main(place: Path, target: Any = None, *, seed: int = 0) -> None:
    """Audit the function of a folder, and write the report beside it.

    Args:
        place: the folder that the process that saw it has written.
        target: the function; taken over or imported unless given.
        seed: of all random numbers.
    """
    data = json.loads((place / FUNCTION).read_text(encoding="utf-8"))
    path, _, modules = data.pop("path"), data.pop("home"), data.pop("modules", [])
    row = Row.from_dict(data)
    handed = taken_over(place) if target is None else None
    if handed is None:
        found = [load_call(Path(file))[:2] for file in row.files]
        handed = target, [Kept(args=args, kwargs=kwargs, text=text_of(args, kwargs)) for args, kwargs in found]
    target, calls = handed
    target = target or (registered(row.key, modules) if row.is_operator else resolved(path))
    about: Any = {"is_operator": row.is_operator, "where": row.where, "uses": set(row.uses), "scopes": row.scopes}
    seen = Seen(key=row.key, target=target, **about)
    seen.kept += calls
    audit_into(place, seen, seed=seed, path=path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), seed=int(sys.argv[2]))
