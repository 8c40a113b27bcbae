"""A message cut to what a table has room for."""

from __future__ import annotations

import re


def brief_message(message: str) -> str:
    """Return a message that quotes an error without most of the quotation: the record has it whole.

    What a published implementation raised is mostly a sentence of torch's, which many pages would repeat.
    """
    return re.sub(r"(raised \w+: (?:\S+ ){3})\S.*", r"\1…", message)
