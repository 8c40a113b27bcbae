"""Defaults that words state, held to the signature: in the arguments of a spec, and in the docstrings of autodoc."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradspec.sphinx_ext import _config
from gradspec.sphinx_ext._warnings import GradspecWarning, warn
from gradspec.sphinx_ext.domain._domain import domain_of
from gradspec.sphinx_ext.domain._within import lies_within

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: "default: 0.5", "(default `None`)", "defaults to 'mean'", "the default is 1e-3".
_STATED = re.compile(
    r"\bdefault(?:s to| is|:| =)?\s+[`*]{0,2}"
    r"(?P<value>-?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf\b)|None|True|False|\"[^\"]*\"|'[^']*')",
    re.IGNORECASE,
)
#: The words on a parameter state its default so many lines below its name, at most.
FAR = 9
#: Where the page that is read keeps what was said of it.
_SAID = "gradspec-defaults"
_PARAMETER = re.compile(
    r":(?:param|parameter|arg|argument|keyword|type)\s+(?:[^:]*\s)?[`*\\]*(?P<name>\w+):\s*(?P<text>.*)"
)


def stated_default(text: str) -> str | None:
    """Return the default that a text states, as it is written there, or None."""
    match = _STATED.search(text)
    return match["value"].rstrip(".") if match else None


def wrong_defaults(sheet: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with each default that the arguments of a sheet state.

    Args:
        sheet: of a spec, with the signature that was read off the code.
    """
    defaults = {parameter["name"]: parameter["default"] for parameter in sheet["signature"]["parameters"]}
    for argument in sheet["arguments"]:
        stated = stated_default(argument["text"])
        if stated is not None and argument["name"] in defaults:
            yield from _complaint(argument["name"], stated, defaults[argument["name"]])


def setup(app: Sphinx) -> None:
    """Look at each docstring once napoleon (500) has made fields of it."""
    app.connect("autodoc-process-docstring", _check_docstring, priority=600)


def _check_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if not (_config.options(app.config).check_defaults or _is_of_spec(app, name)):
        return
    try:
        is_function = isinstance(obj, type) and hasattr(obj, "apply") and hasattr(obj, "forward")
        parameters = inspect.signature(obj.forward if is_function else obj).parameters
    except (TypeError, ValueError):
        return
    said: list[tuple[str, str]] = app.env.current_document.setdefault(_SAID, [])  # type: ignore[assignment]
    for parameter, text in _fields(lines):
        stated = stated_default(text)
        if stated is None or parameter not in parameters:
            continue
        default = parameters[parameter].default
        actual = None if default is inspect.Parameter.empty else repr(default)
        for message in _complaint(parameter, stated, actual):
            where = _line_of(obj, parameter, stated) or app.env.current_document.docname
            if (where, message) in said:
                continue  # the page shows the docstring twice
            said.append((where, message))
            warn(GradspecWarning.DEFAULT, f"docstring of {name}: {message}", where)
            app.env.note_reread()


def _line_of(obj: Any, parameter: str, stated: str) -> str:
    """Return file and line of what a docstring states of a parameter; empty if the source does not have it."""
    try:
        file = inspect.getsourcefile(obj)
        lines, first = inspect.getsourcelines(obj)
    except (TypeError, OSError):
        return ""
    named = re.compile(rf"\b{re.escape(parameter)}\b")
    begins = [i for i, line in enumerate(lines) if named.search(line)]
    states = [
        i for i, line in enumerate(lines) if stated in line and _STATED.search(" ".join(lines[max(i - 1, 0) : i + 1]))
    ]
    found = next((i for i in states if any(i - FAR <= begin <= i for begin in begins)), None)
    return "" if found is None or file is None else f"{file}:{first + found}"


def _is_of_spec(app: Sphinx, name: str) -> bool:
    """Whether a spec of this build documents an object, or the class that it is in."""
    sheets = [sheet for record in domain_of(app.env).records.build for sheet in record.report.sheets.values()]
    return lies_within(name, (documented for sheet in sheets for documented in sheet["documented"]))


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each parameter; a text goes on as long as lines are indented."""
    name, text = "", ""
    for line in (*lines, ""):
        if match := _PARAMETER.match(line.strip()):
            if name:
                yield name, text
            name, text = match["name"], match["text"]
        elif name and line[:1].isspace() and line.strip():
            text += f" {line.strip()}"
        elif name:
            yield name, text
            name = ""


def _complaint(name: str, stated: str, actual: str | None) -> Iterator[str]:
    if actual is None:
        yield f"the words on {name} say that its default is {stated}, and the signature has none"
    elif _value(stated) != _value(actual):
        yield f"the words on {name} say that its default is {stated}, and the signature says {actual}"


def _value(text: str) -> Any:
    if text in ("inf", "-inf"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
