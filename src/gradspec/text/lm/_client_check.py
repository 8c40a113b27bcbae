"""Check the configuration of a client before its first request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradspec.text.lm._budget import Budget
from gradspec.text.lm._cache import Cache
from gradspec.text.lm._model import check_model
from gradspec.text.lm._rate import RateLimit
from gradspec.text.lm._retry import Retry

#: What each part is, and how one is written.
PARTS = {
    "cache": (Cache, 'Cache("replies.sqlite3")'),
    "budget": (Budget, "Budget(calls=100)"),
    "retry": (Retry, "Retry(attempts=3)"),
    "rate": (RateLimit, "RateLimit(requests=60)"),
    "options": (Mapping, '{"temperature": 0}'),
}
#: What a call is given beside options.
OF_A_CALL = ("messages", "model", "sample", "schema")


def check_client(model: object, schema_attempts: int, **parts: Any) -> None:
    """Refuse what a client cannot be made of.

    Examples:
        >>> check_client(print, 2, budget=10)
        Traceback (most recent call last):
        ...
        TypeError: budget is such as Budget(calls=100), or None; not 10
    """
    check_model(model)
    if not isinstance(schema_attempts, int) or schema_attempts < 1:
        raise ValueError(f"schema_attempts counts the first too, so it is at least 1, not {schema_attempts!r}")
    for name, part in parts.items():
        kind, example = PARTS[name]
        if part is not None and not isinstance(part, kind):
            raise TypeError(f"{name} is such as {example}, or None; not {part!r}")
    for option in parts.get("options") or {}:
        if not isinstance(option, str) or option in OF_A_CALL:
            raise ValueError(f"options are those of the model, {PARTS['options'][1]}; {option!r} is none")
