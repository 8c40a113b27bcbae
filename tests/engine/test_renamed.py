"""The names of before work once more, each with a warning that says the new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from typing import Any

import pytest

from gradspec import ModuleSpec, TextSpec
from gradspec.functions import GRAD_FACTOR
from gradspec.law import HOLDS, Law, Verdict
from gradspec.nn import MODULES
from gradspec.text import TEXTS

OBJECTS = [
    ("gradspec.spec", "Attempt", "Invocation"),
    ("gradspec.promise", "Attempt", "Invocation"),
    ("gradspec.laws", "undisturbed", "preserved_process_state"),
    ("gradspec.text", "Later", "Deferred"),
    ("gradspec.text", "later", "defer"),
]
LAW = Law(name="law", family="values", statement="", check=lambda trial: HOLDS, doc="", capability="vmap")
VERDICT = Verdict(spec="spec", law="law", case="case", finding=HOLDS, rerun="gradspec check")
FIELDS = [
    (GRAD_FACTOR, "documents", "documented"),
    (GRAD_FACTOR, "behind", "autograd_function"),
    (GRAD_FACTOR, "attempt", "invocation"),
    (MODULES[0], "attempt", "invocation"),
    (TEXTS[0], "attempt", "invocation"),
    (MODULES[0], "documents", "documented"),
    (TEXTS[0], "documents", "documented"),
    (LAW, "promise", "capability"),
    (VERDICT, "again", "rerun"),
]


@pytest.mark.parametrize(("module", "old", "new"), OBJECTS)
def test_an_object_has_its_old_name(module: str, old: str, new: str) -> None:
    home = import_module(module)
    with pytest.warns(DeprecationWarning, match=f"^{module}.{old} is called {new} now$"):
        assert getattr(home, old) is getattr(home, new)


@pytest.mark.parametrize("module", [module for module, *_ in OBJECTS])
def test_a_name_that_never_was_is_missing(module: str) -> None:
    with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute 'nonsense'$"):
        _ = import_module(module).nonsense


@pytest.mark.parametrize(("holder", "old", "new"), FIELDS, ids=lambda value: getattr(value, "name", str(value)))
def test_a_field_has_its_old_name(holder: Any, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now$"):
        assert getattr(holder, old) == getattr(holder, new)


MADE: list[tuple[Callable[..., Any], Any, str, str]] = [
    (Law, LAW, "promise", "capability"),
    (Verdict, VERDICT, "again", "rerun"),
    (type(GRAD_FACTOR), GRAD_FACTOR, "documents", "documented"),
    (ModuleSpec, MODULES[0], "documents", "documented"),
    (TextSpec, TEXTS[0], "documents", "documented"),
]


@pytest.mark.parametrize(("cls", "like", "old", "new"), MADE, ids=lambda value: getattr(value, "__name__", ""))
def test_a_value_is_made_under_the_old_name(cls: Callable[..., Any], like: Any, old: str, new: str) -> None:
    given = {field.name: getattr(like, field.name) for field in fields(like) if field.name != new}
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now$"):
        made = cls(**given, **{old: getattr(like, new)})
    assert getattr(made, new) == getattr(like, new)
