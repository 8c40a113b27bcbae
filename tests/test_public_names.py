"""No public name is lost in a move, and none becomes public unnoticed: tests/public_names.toml lists them."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from gradspec import __version__
from gradspec.functions import FUNCTIONS
from gradspec.nn import MODULES
from gradspec.spec import Spec

LIST = tomllib.loads(Path(__file__).with_name("public_names.toml").read_text(encoding="utf-8"))
LISTED: dict[str, list[str]] = LIST["names"]


def public(module: str) -> set[str]:
    """Return what a module says is public; without `__all__`, what it defines and does not hide."""
    found = import_module(module)
    defined = {name for name, value in vars(found).items() if getattr(value, "__module__", "") == module}
    names = set(getattr(found, "__all__", defined))
    assert [name for name in names if not hasattr(found, name)] == [], module
    return {name for name in names if not name.startswith("_")}


def of_new_specs(module: str) -> set[str]:
    """Return the names of the specs that a module lists, and of what they document: new ones need no line yet."""
    found = {name: value for name, value in vars(import_module(module)).items() if isinstance(value, Spec)}
    specs = {name: spec for name, spec in found.items() if spec in (*FUNCTIONS, *MODULES)}
    return {*specs, *(one.__name__ for spec in specs.values() for one in spec.documented)}


@pytest.mark.parametrize("module", LISTED)
def test_the_public_names_are_those_of_the_list(module: str) -> None:
    listed, found = set(LISTED[module]), public(module)
    new = of_new_specs(module) if LIST["version"] == __version__ else set()
    assert sorted(listed - found) == [], "lost: keep it, or an old name of it and a line in the changelog"
    assert sorted(found - listed - new) == [], "new: list it, and for a new version write that there"
