"""Extract the text between two tags in a model's answer, outside of its reasoning."""

from __future__ import annotations

import re
from functools import lru_cache

REASONING = "think|thinking|thought|reasoning"


def contents(answer: str, tag: str) -> list[str]:
    """Return what is between each `<tag>` and its `</tag>`, in order; what is between them may hold such tags.

    Returns:
        The contents; none where an opening tag has no closing one, unless the whole answer is one block.

    Example:
        >>> contents("<think>or <new>a</new>?</think> <new>b</new>", "new")
        ['b']
    """
    said = without_reasoning(answer, tag)
    found: list[str] = []
    depth = begin = 0
    for match in _tags(tag).finditer(said):
        if match["name"].lower() != tag or (match["closes"] and not depth):
            continue
        depth += -1 if match["closes"] else 1
        if depth == 1 and not match["closes"]:
            begin = match.end()
        elif not depth:
            found.append(said[begin : match.start()])
    if not depth:
        return found
    whole = re.fullmatch(rf"\s*<{tag}>(.*)</{tag}>\s*", said, re.DOTALL | re.IGNORECASE)
    return [whole[1]] if whole else []


def without_reasoning(answer: str, tag: str) -> str:
    """Return an answer without blocks such as `<think>...</think>`; one that is inside of a `<tag>` stays.

    A block that is never closed goes to the end; one that was never opened began before the answer.

    Example:
        >>> without_reasoning("so it is wrong</think>No. <score>0</score>", "score")
        'No. <score>0</score>'
    """
    kept: list[str] = []
    depth = begin = 0
    reasoning = False
    for match in _tags(tag).finditer(answer):
        closes = bool(match["closes"])
        if match["name"].lower() == tag:
            depth = 0 if reasoning else max(0, depth + (-1 if closes else 1))
        elif depth:
            continue
        elif closes:
            kept = kept if reasoning else []
            reasoning, begin = False, match.end()
        elif not reasoning:
            kept.append(answer[begin : match.start()])
            reasoning = True
    return "".join(kept if reasoning else [*kept, answer[begin:]]).strip()


@lru_cache(maxsize=8)
def _tags(tag: str) -> re.Pattern[str]:
    return re.compile(rf"<(?P<closes>/?)(?P<name>{tag}|{REASONING})>", re.IGNORECASE)
