"""Errors in one line, whatever they are."""

from __future__ import annotations


def one_line(error: BaseException) -> str:
    """Return the type and the text of an error in one line; an error of no text may raise where it is asked for it."""
    try:
        text = str(error)
    except Exception as trouble:
        text = f"(its text raised {type(trouble).__name__})"
    return " ".join(f"{type(error).__name__}: {text}".split())
