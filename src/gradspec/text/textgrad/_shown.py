"""A text as TextGrad's prompts show it."""

from __future__ import annotations


def ends_of(text: str, words: int) -> str:
    """Return the first and the last words of a text.

    Example:
        >>> ends_of("one two three four five", 1)
        'one (...) five'
    """
    found = text.split(" ")
    return text if len(found) <= 2 * words else " ".join([*found[:words], "(...)", *found[-words:]])
