"""Merge several gradients of one Variable: an ordered list of texts, or a sum of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gradspec.text._data import Data, Kind, kind

if TYPE_CHECKING:
    from gradspec.text._graph._variable import Variable

SEPARATOR = "\n"
#: The characters of a role that names everything that it is made of.
ROLE = 200


@dataclass(frozen=True, kw_only=True)
class Part:
    """One contribution to a gradient, and where it came from."""

    #: What the contribution says.
    data: Data
    #: Its role, as the backward that wrote it named it.
    role: str
    #: The node whose backward wrote it, as `AnswerBackward`; empty for the gradient that a backward pass began with.
    source: str
    #: The roles of the outputs of that node: what was being judged when it was written.
    outputs: tuple[str, ...]


def add(gradients: Sequence[Variable]) -> Data:
    """Return the sum of numbers, or of lists of numbers place by place, each as often as it arrived."""
    total: Any = gradients[0].data
    for gradient in gradients[1:]:
        data: Any = gradient.data
        total = [a + b for a, b in zip(total, data, strict=True)] if isinstance(total, list) else total + data
    return cast("Data", total)


def distinct(gradient: Variable) -> list[Variable]:
    """Return the gradients that a merged one is made of, in order, each once however many paths brought it.

    Merged gradients are made of merged gradients, in a graph that may have more paths than there are atoms; so each
    is opened once, and nothing here recurses.
    """
    seen: set[int] = set()
    found: list[Variable] = []
    stack = [gradient]
    while stack:
        top = stack.pop()
        if id(top) in seen:
            continue
        seen.add(id(top))
        if top._sources:
            stack.extend(reversed(top._sources))
        else:
            found.append(top)
    return found


def render(gradient: Variable) -> Data:
    """Return the texts of a merged gradient, in order, a line each; of lists, place by place.

    An empty text says nothing and leaves no blank line.
    """
    data: list[Any] = [atom.data for atom in distinct(gradient)]
    return [_lines(texts) for texts in zip(*data, strict=True)] if isinstance(data[0], list) else _lines(data)


def _lines(texts: Sequence[str]) -> str:
    return SEPARATOR.join(text for text in texts if text)


def role_of(roles: Iterable[str]) -> str:
    """Return the role of texts that are put together: each role once, or the first and how many more there are.

    In full, k calls that each take the parts of the one before would make 2^k.

    Example:
        >>> role_of(["question", "answer", "question", ""])
        'question and answer'
    """
    found = list(dict.fromkeys(role for role in roles if role))
    whole = " and ".join(found)
    return whole if len(whole) <= ROLE or len(found) < 2 else f"{found[0]} and {len(found) - 1} more"


def kind_of(gradient: Variable) -> Kind:
    """Return what a gradient can be merged with, without writing its text out."""
    return gradient._kind if gradient._kind is not None else kind(gradient.data)
