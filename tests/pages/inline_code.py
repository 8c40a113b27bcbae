"""Code within a line of README, CONTRIBUTING, pages and docstrings: what is there, and what it names."""

from __future__ import annotations

import ast
import builtins
import importlib
import keyword
import re
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

import gradspec
from gradspec.cli import main
from gradspec.laws import LAWS
from gradspec.sphinx_ext._config import Options
from gradspec.sphinx_ext._warnings import GradspecWarning

ROOT = Path(__file__).parents[2]
WORDS = Path(__file__).parent / "inline_words.toml"
_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*\s*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<![`\w}])(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
#: Modules of torch whose names the words use as they are.
_TORCH = (
    torch,
    torch.Tensor,
    torch.nn,
    torch.nn.Module,
    torch.autograd,
    torch.autograd.Function,
    torch.func,
    torch.library,
    torch.compiler,
)


@dataclass(frozen=True)
class Span:
    """Code in a line, and where."""

    where: str
    code: str


def spans() -> Iterator[Span]:
    """Yield the code in the lines of everything that people read."""
    by_name = {law.name for law in LAWS}
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if path.parent != ROOT / "docs" / "laws" or path.stem not in by_name:  # a build writes those, from docstrings
            yield from spans_of(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    for path in sorted((ROOT / "src" / "gradspec").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (words := ast.get_docstring(node)):
                name = getattr(node, "name", "the module")
                yield from spans_of(words, f"{path.relative_to(ROOT).as_posix()}, docstring of {name}")


def spans_of(text: str, where: str) -> Iterator[Span]:
    """Yield the code in the lines of a text, by line where the text is a page."""
    text = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        for found in _SPAN.finditer(line):
            yield Span(where if "docstring" in where else f"{where}:{number}", found[2])


def wrong(span: Span) -> str:
    """Return what is wrong with code in a line; empty if nothing is."""
    code = span.code
    words = code.split()
    if len(words) > 1 and (look := COMMANDS.get(words[0])):
        return look(words)
    if re.fullmatch(r"[A-Za-z_]\w*", code):
        return "" if code in known() or code in listed() else "nothing has that name, and it is in no list"
    dotted = re.fullmatch(r"([A-Za-z_]\w*(?:\.\w+)+)(?:\(.*\))?", code)
    if dotted and dotted[1].partition(".")[0] in _starts() and dotted[1] not in listed():
        return "" if _is_there(dotted[1]) else "there is no such object"
    return ""


def _gradspec(words: list[str]) -> str:
    command: Any = main.get_command(None, words[1])
    if command is None:
        return "" if words[1] in ("COMMAND", "--help", "--version") else f"gradspec has no command {words[1]!r}"
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = {word.partition("=")[0] for word in words if word.startswith("-")} - options - {"--help"}
    if unknown:
        return f"gradspec {words[1]} has no option {sorted(unknown)[0]}"
    gone = [word for word in words[2:] if re.fullmatch(r"gradspec(\.\w+)+", word) and not _is_there(word)]
    return f"there is no {gone[0]}" if gone else ""


def _nox(words: list[str]) -> str:
    names = words[words.index("-s") + 1 :] if "-s" in words else []
    names, given = (names[: names.index("--")], names[names.index("--") + 1 :]) if "--" in names else (names, [])
    if unknown := sorted({*names} - sessions()):
        return f"noxfile.py has no session {unknown[0]!r}"
    asked = given[:1] if names == ["lab"] else []
    return "".join(f"the laboratory has no task {task!r}" for task in asked if task not in tasks() | {"TASK"})


def _pytest(words: list[str]) -> str:
    plugin = (ROOT / "src" / "gradspec_pytest" / "_options.py").read_text(encoding="utf-8")
    ours = [word.partition("=")[0] for word in words if word.startswith("--gradspec")]
    unknown = [word for word in ours if f'"{word}"' not in plugin]
    return f"the plugin has no option {unknown[0]}" if unknown else ""


def _python(words: list[str]) -> str:
    if words[1:3] == ["-m", "pip"] and len(words) > 3 and words[3] not in ("install", "download"):
        return f"pip has no command {words[3]!r} that a page may name"
    if words[1:4] == ["-m", "pip", "install"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extra = re.search(r"\[(\w+)\]", words[-1])
        return (
            f"gradspec has no extra {extra[1]!r}" if extra and extra[1] not in project["optional-dependencies"] else ""
        )
    files = [word for word in words[1:] if re.fullmatch(r"(?:src|docs|tests)/\S+", word)]
    return next((f"there is no {file}" for file in files if not (ROOT / file).exists()), "")


#: What looks up a command, by its first word.
COMMANDS = {"gradspec": _gradspec, "nox": _nox, "pytest": _pytest, "python": _python, "pip": _python}


@cache
def sessions() -> frozenset[str]:
    """Return the names of the sessions of nox."""
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^@nox\.session.*\ndef (\w+)\(session", text, re.MULTILINE))


@cache
def tasks() -> frozenset[str]:
    """Return what `nox -s lab -- TASK` takes: the keys of the table, and a word for each version of torch."""
    text = (ROOT / "src" / "gradspec_lab" / "tasks" / "_tasks.py").read_text(encoding="utf-8")
    (versions,) = re.findall(r"^TORCHES = \{(.*)\}$", text, re.MULTILINE)
    table = text.partition("\nTASKS: ")[2]
    each = {f"torch-{minor}" for minor in re.findall(r'"([\d.]+)":', versions)}
    return frozenset({"measure", "sample", "--list", *re.findall(r'^    "([\w-]+)":', table, re.MULTILINE)} | each)


@cache
def known() -> frozenset[str]:
    """Return every name that Python, torch and our source define, take or have as a value."""
    found = {name for thing in (builtins, *_TORCH) for name in dir(thing)} | set(keyword.kwlist) | sessions()
    found |= {f"gradspec_{name}" for name in Options.__dataclass_fields__}
    for path in (ROOT / "src").rglob("*.py"):
        found.add(path.stem if path.stem != "__init__" else path.parent.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                found.add(node.value)
    return frozenset(found)


@cache
def listed() -> frozenset[str]:
    """Return the names of others, each with the reason for which it is in the list."""
    lists = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    return frozenset(word for words in lists.values() for word in words)


@cache
def _starts() -> frozenset[str]:
    return frozenset({"gradspec", "torch", *(name for name in gradspec.__all__ if name[0].isupper())})


def _is_there(name: str) -> bool:
    if name in {f"gradspec.{warning.value}" for warning in GradspecWarning}:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # an older name is there, too
        return _resolves(name.split("."))


def _resolves(parts: list[str]) -> bool:
    if hasattr(gradspec, parts[0]):
        parts.insert(0, "gradspec")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            fields = getattr(found, "__dataclass_fields__", {})
            if part not in fields and not hasattr(found, part):
                return False
            found = getattr(found, part, None)
        return True
    return False
