"""Make foreign text printable on a terminal, on a page or in a report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

#: What steers a terminal, or the direction in which text is shown: control characters but for tabs and ends of lines,
#: separators of lines and paragraphs, and the marks, embeddings, overrides and isolates of the bidirectional algorithm.
#: Beside them the lone half of a surrogate pair, which no stream and no file takes.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

#: What a CI service takes for a command in a log: `::` where a line begins, blanks and colours left out, and `##[` or
#: `##vso[` anywhere in it.
_COMMAND = re.compile(r"(?m)^((?:[^\S\n]|\x1b\[[\d;]*m)*):(?=:)|#(?=#(?:\[|vso\[))")


def visible(text: str) -> str:
    r"""Return a text in which what steers a terminal or a reader's eye is an escape to read, as `\x1b`."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def for_log(text: str) -> str:
    r"""Return a text for a terminal or a CI log, in which no line commands the service: `\x3a:error` for `::error`."""
    return _COMMAND.sub(lambda found: r"\x23" if found[1] is None else rf"{found[1]}\x3a", text)


def name_of(text: str) -> str:
    """Return a name as it can be shown: visible, in one line, and no command of a CI log."""
    return for_log(visible(text).replace("\n", "\\n"))


def visible_data(value: Any) -> Any:
    """Return plain data whose texts, names of fields included, steer nothing."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_data(key): visible_data(item) for key, item in value.items()}
    return [visible_data(item) for item in value] if isinstance(value, list | tuple) else value


def one_line(error: BaseException) -> str:
    """Return the type and the text of an error in one line; an error of no text may raise where it is asked for it."""
    try:
        text = str(error)
    except Exception as trouble:
        text = f"(its text raised {type(trouble).__name__})"
    return visible(" ".join(f"{type(error).__name__}: {text}".split()))


def in_short(value: Any) -> str:
    """Return a value in one short line."""
    text = " ".join(repr(value).split())
    return f"{text[:77]}..." if len(text) > 80 else text


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names in a sentence: "`a`, `b` and `c`"."""
    quoted = [f"`{name}`" for name in names]
    return f" {word} ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))
