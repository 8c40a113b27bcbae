"""What an edit of the drift suite is, and the checks that may catch it: those that users run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from gradspec._record import to_text


@dataclass(frozen=True, kw_only=True)
class Site:
    """Records of some specs are made anew, then the site is built, incrementally, with warnings as errors."""

    #: As `gradspec check` takes them; of the others the record stays.
    specs: tuple[str, ...] = ()
    #: The laws that are run on them; all of them if empty.
    laws: tuple[str, ...] = ()
    #: "dummy" reads and resolves every page that changed, and writes none; what only writing shows needs "html".
    builder: str = "dummy"


@dataclass(frozen=True, kw_only=True)
class Tests:
    """Some tests, as pytest takes them."""

    __test__ = False
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One wrong edit, and how it must come to light."""

    #: What kind of statement it makes wrong; no two edits are of one kind.
    kind: str
    #: Relative to the root.
    file: str
    #: Stands once in the file; empty: the whole file.
    old: str
    #: Stands there instead; None: the file is deleted.
    new: str | None
    #: The narrowest check that must fail.
    check: Site | Tests
    #: A regular expression for one line of what it prints: the place and the cause.
    says: str
    #: `old` is a regular expression, of which the first match is replaced: what it matches is measured anew at times.
    is_pattern: bool = False
    #: The file is a record, and gets the checksum of what it holds then: as if that had been measured.
    is_measured: bool = False

    def applied(self, text: str) -> str:
        """Return a text with the edit.

        Raises:
            ValueError: it does not hold what is to be replaced, or more than once.
        """
        assert self.new is not None
        if self.is_pattern:
            made, count = re.subn(self.old, self.new, text, count=1)
        else:
            made, count = text.replace(self.old, self.new), text.count(self.old)
        if count != 1 or made == text:
            raise ValueError(f"{self.file} does not hold {self.old!r} once")
        return sealed(json.loads(made)) if self.is_measured else made


def sealed(record: dict[str, Any]) -> str:
    """Return the text of a record, with the checksum of what it holds."""
    content = {key: v for key, v in record.items() if key not in ("schema", "kind", "checksum")}
    return to_text(record["kind"], content, rows="subjects" if record["kind"] == "kill matrix" else "")


FACTOR = "gradspec.functions:GRAD_FACTOR"
SHAKE = "gradspec.functions:SHAKE_SHAKE"
BANK = "gradspec.functions:LINEAR_AVERAGE_OP"
MEMORY = "gradspec.nn:LINEAR_AVERAGE"
