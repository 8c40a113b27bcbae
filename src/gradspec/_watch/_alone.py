"""`python -m gradspec._watch._alone FOLDER`: the audit of one function that another process saw, from its files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gradspec._audit._saved_call import load_call
from gradspec._watch._audits import audit_into
from gradspec._watch._importing import resolved
from gradspec._watch._kept import Kept, text_of
from gradspec._watch._row import Row
from gradspec._watch._seen import Seen
from gradspec._watch._store import FUNCTION
from gradspec.spec._schema import overload_of


def main(place: Path, target: Any = None) -> None:
    """Audit the function of a folder, and write the report beside it.

    Args:
        place: the folder that the process that saw it has written.
        target: the function; imported unless given.
    """
    data = json.loads((place / FUNCTION).read_text(encoding="utf-8"))
    path, _ = data.pop("path"), data.pop("home")
    row = Row.from_dict(data)
    if target is None:
        target = overload_of(row.key) if row.is_operator else resolved(path)
    seen = Seen(key=row.key, target=target, is_operator=row.is_operator, where=row.where, uses=set(row.uses))
    for file in row.files:
        args, kwargs, _ = load_call(Path(file))
        seen.kept.append(Kept(args=args, kwargs=kwargs, text=text_of(args, kwargs)))
    audit_into(place, seen, path=path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
