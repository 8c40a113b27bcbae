"""Which addresses become links: what a record or a page of others says may be hostile."""

from __future__ import annotations

import re

#: On the web, of mail, and relative ones. Others can run code in a reader's browser.
_LINKED = re.compile(r"https?:|mailto:|[^:\s]+(?:[/?#]|\Z)", re.IGNORECASE)


def is_linked(address: str) -> bool:
    """Return whether a link to an address is safe to follow."""
    return _LINKED.match(address) is not None
