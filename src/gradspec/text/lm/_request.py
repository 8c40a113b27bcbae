"""One request as a value, and the canonical JSON by which two requests are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gradspec.text.lm._model import Message


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything that decides a reply; equal requests share one cached reply."""

    #: Who is asked, as plain data: of a server its address and model, never its key.
    identity: Mapping[str, Any]
    messages: tuple[Message, ...]
    #: What goes to the model beside the messages: temperature, max_tokens...
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The JSON schema that the reply must satisfy.
    schema: Mapping[str, Any] | None = None
    #: Which of several replies to one request: a cache keeps one for each.
    sample: int = 0

    @property
    def canonical(self) -> str:
        """The request in canonical JSON: sorted keys, ASCII, no spaces, no NaN."""
        return canonical(
            {
                "identity": self.identity,
                "messages": [{"role": m.role, "content": m.content} for m in self.messages],
                "options": self.options,
                "schema": self.schema,
                "sample": self.sample,
            }
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a model call beside the messages."""
        return {**self.options, **({} if self.schema is None else {"schema": self.schema})}

    def continued(self, *messages: Message) -> Request:
        """Return the request with further messages."""
        return replace(self, messages=self.messages + messages)


def key_of(text: str) -> str:
    """Return the key of a canonical request: its SHA-256."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical(data: object) -> str:
    r"""Return plain data as canonical JSON; refuse what is not plain data, since it has no such form.

    Examples:
        >>> canonical({"b": (1, 2.0), "a": "\xe9"})
        '{"a":"\\u00e9","b":[1,2.0]}'
    """
    try:
        _require_plain(data, "the request")
    except RecursionError:
        raise ValueError("the request holds itself, or is nested too deeply") from None
    return json.dumps(_as_dicts(data), sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _as_dicts(data: object) -> object:
    if isinstance(data, Mapping):
        return {key: _as_dicts(value) for key, value in data.items()}
    return [_as_dicts(value) for value in data] if isinstance(data, list | tuple) else data


def _require_plain(data: object, where: str) -> None:
    if isinstance(data, Mapping):
        for key, value in data.items():
            if not isinstance(key, str):  # JSON would write 1 and "1" alike
                raise TypeError(f"{where} has the key {key!r}; a key is a string")
            _require_plain(value, f"{where}, {key!r}")
    elif isinstance(data, list | tuple):
        for index, value in enumerate(data):
            _require_plain(value, f"{where}, element {index}")
    elif isinstance(data, float) and (data != data or data in (float("inf"), float("-inf"))):
        raise ValueError(f"{where} is {data}, which JSON cannot say")
    elif not (data is None or isinstance(data, str | bool | int | float)):
        raise TypeError(f"{where} is a {type(data).__name__}; a request is made of plain data: pass what JSON can say")
