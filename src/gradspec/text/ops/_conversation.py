"""The messages of a chat: what is said in each conversation of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradspec.text._graph._deferred import length_of, now
from gradspec.text._graph._variable import Variable
from gradspec.text.lm import Message


def message_of(message: Any) -> dict[str, Any]:
    """Return a message as a mapping with its role and content."""
    if isinstance(message, Message):
        return {"role": message.role, "content": message.content}
    if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
        raise TypeError(f"a message is a mapping with the keys role and content, not {message!r}")
    for piece in pieces_of(message["content"]):
        if not isinstance(piece, Variable | str | int | float):
            raise TypeError(f"the content of a message is a text, a Variable, or a list of both; {piece!r} is neither")
    return {"role": message["role"], "content": message["content"]}


def pieces_of(content: Any) -> list[Any]:
    """Return the texts and Variables of a content."""
    return list(content) if isinstance(content, list | tuple) else [content]


def batch_length(messages: list[Any]) -> int | None:
    """Return the number of conversations; None for a single one, without a Variable that holds a list."""
    pieces = [piece for message in messages for piece in pieces_of(message["content"])]
    lengths = {length for length in map(length_of, pieces) if length is not None}
    if len(lengths) > 1:
        raise ValueError(f"the lists in one batch have different lengths: {sorted(lengths)}")
    return lengths.pop() if lengths else None


def conversations_of(roles: list[str], texts: list[list[Any]], length: int | None) -> list[list[dict[str, str]]]:
    """Return the messages of each conversation, the texts of a batch in their places."""
    there = [[now(text) for text in line] for line in texts]
    return [
        [
            {"role": role, "content": "".join(text_at(text, place) for text in line)}
            for role, line in zip(roles, there, strict=True)
        ]
        for place in range(1 if length is None else length)
    ]


def text_at(data: Any, place: int) -> str:
    """Return the text at a place of a batch."""
    return str(data[place] if isinstance(data, list) else data)


def each_of(content: Any, ask: Any) -> Any:
    """Return what `ask` makes of each Variable of a content, in the shape of the content; None for what is none."""
    if isinstance(content, list | tuple):
        return type(content)(each_of(piece, ask) for piece in content)
    return ask(content) if content is True or isinstance(content, Variable) else None
