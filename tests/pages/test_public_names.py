"""Every public name has a page: what a package exports, some directive of some page documents."""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache

import pytest

from gradspec.spec import Spec
from gradspec.spec._kinds import spec_sheet
from pages.blocks import DOCS

PACKAGES = (
    "gradspec",
    "gradspec.functions",
    "gradspec.nn",
    "gradspec.text",
    "gradspec.text.lm",
    "gradspec.text.optim",
    "gradspec.text.textgrad",
)
#: `.. autofunction:: name`, `.. py:attribute:: name`, `:members: a, b`.
DIRECTIVE = re.compile(r"^\s*\.\. (?:py:)?(?P<what>\w+):: (?P<name>[\w.]+)", re.MULTILINE)


@cache
def documented() -> frozenset[str]:
    """Return every dotted name that a page documents, short of what `:members:` adds to a module or a class."""
    found: set[str] = set()
    for path in DOCS.rglob("*.md"):
        module = ""
        for match in DIRECTIVE.finditer(path.read_text(encoding="utf-8")):
            if match["what"] in ("currentmodule", "module"):
                module = match["name"]
                continue
            found |= {match["name"], f"{module}.{match['name']}"}
    return frozenset(found)


def is_documented(package: str, name: str) -> bool:
    thing = getattr(importlib.import_module(package), name)
    if isinstance(thing, Spec):
        pages = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")]
        return any(f"{{gradspec-{thing.kind}}} {thing.name}\n" in page for page in pages)
    if isinstance(thing, tuple) and all(isinstance(item, Spec) for item in thing):
        return True  # a registry, each of whose specs has a page
    # `automodule` documents what a module defines, and what a package shows.
    home = getattr(thing, "__module__", package)
    homes = {f"{package}.{name}", f"{home}.{name}", home, package}
    return bool(homes & documented()) or f"{package}.{name}" in by_directive() or is_shown_by_another(name, thing)


def is_shown_by_another(name: str, thing: object) -> bool:
    """Return whether a page documents a module that has it from where it is defined."""
    modules = (importlib.import_module(module) for module in documented() if module in sys.modules)
    return any(name in getattr(module, "__all__", ()) and getattr(module, name) is thing for module in modules)


@cache
def by_directive() -> frozenset[str]:
    """Return the objects that the pages of specs describe."""
    specs = [
        thing
        for package in PACKAGES
        for thing in vars(importlib.import_module(package)).values()
        if isinstance(thing, Spec)
    ]
    return frozenset(spec_sheet(spec)["documented"][0] for spec in specs if spec.documented)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_on_a_page(package: str) -> None:
    missing = [name for name in importlib.import_module(package).__all__ if not is_documented(package, name)]
    assert missing == [], "\n".join(f"{package}.{name} is public, and no page documents it" for name in missing)
