"""Every public member of a documented class is on a page, and every member on a page is there."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.util.inventory import InventoryFile

#: Members of documented classes that no page shows, each with the reason.
UNSHOWN = {
    "LinearAverage.extra_repr": "torch calls it for `repr`, which a reader sees.",
    "RateLimit.take": "A `Client` calls it.",
    "Budget.reserve": "A `Client` calls it.",
    "Budget.settle": "A `Client` calls it.",
    "Budget.call": "A `Client` calls it.",
    "Budget.withdraw": "A `Client` calls it.",
    "Cache.get": "A `Client` calls it.",
    "Cache.put": "A `Client` calls it.",
    "Cache.account": "A `Budget` calls it.",
    "Cache.through": "A `Client` calls it.",
    "Cassette.found": "A `Client` calls it.",
    "Cassette.keep": "A `Client` calls it.",
    "Cassette.take": "A `Client` calls it.",
    "Client.cache": "A dry run reads it.",
    "Client.request": "A dry run calls it.",
    "Client.schema_attempts": "A dry run reads it.",
    "Load.of": "A dry run calls it.",
    "Deferred.args": "A backward returns it, and the engine reads its fields.",
    "Deferred.kwargs": "A backward returns it, and the engine reads its fields.",
    "Mapped.get": "A protocol: it says what a cache that a user gives must have, and an engine calls it.",
}
#: Classes that are on a page because a sentence links to them, and whose members are not for users.
PASSED_ON = {
    "gradspec._record._source.Source": "A record hands it out; what users may do with it is on the page of the report.",
}


def names(site: Path) -> dict[str, set[str]]:
    """Return the Python names that the pages define, by kind of object."""
    data = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    return {kind: set(items) for kind, items in data.items() if kind.startswith("py:")}


def found(name: str) -> tuple[bool, Any]:
    """Return whether there is an object, a field or an attribute of this name, and its value where it has one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for place, part in enumerate(parts[end:], end):
            if not hasattr(value, part):
                return place == len(parts) - 1 and inspect.isclass(value) and part in set_by(value), None
            value = getattr(value, part)
        return True, value
    return False, None


def set_by(owner: type) -> Iterator[str]:
    """Yield the names that a class annotates, or sets on its instances."""
    for base in owner.__mro__[:-1]:
        yield from inspect.get_annotations(base)
        yield from re.findall(r"\bself\.(\w+)\b[^=\n]* = ", inspect.getsource(base))


def test_every_member_on_a_page_is_there(site: Path) -> None:
    listed = sorted(name for names_ in names(site).values() for name in names_)
    assert len(listed) > 500
    assert [f"a page documents {name}, and there is no such object" for name in listed if not found(name)[0]] == []


def members(owner: type) -> Iterator[str]:
    """Yield the public members that a class itself defines."""
    for name, value in vars(owner).items():
        is_member = callable(value) or isinstance(value, property | classmethod | staticmethod)
        if not name.startswith("_") and (is_member or name in getattr(owner, "__dataclass_fields__", {})):
            yield name


def test_every_public_member_of_a_documented_class_is_on_a_page(site: Path) -> None:
    listed = names(site)
    everything = {name for names_ in listed.values() for name in names_}
    shown: dict[type, set[str]] = {}
    for name in listed["py:class"] | listed["py:exception"]:
        owner = found(name)[1]
        if inspect.isclass(owner):
            shown.setdefault(owner, set()).add(name)
    assert len(shown) > 100
    missing = [
        f"{min(aliases, key=len)}.{member} is public, and no page documents it"
        for owner, aliases in shown.items()
        if not aliases & set(PASSED_ON)
        for member in members(owner)
        if f"{owner.__name__}.{member}" not in UNSHOWN
        and not any(f"{alias}.{member}" in everything for alias in aliases)
    ]
    assert missing == []


def test_what_is_not_shown_is_still_there(site: Path) -> None:
    shown = [found(name)[1] for name in names(site)["py:class"] | names(site)["py:exception"]]
    held = {f"{owner.__name__}.{member}" for owner in shown if inspect.isclass(owner) for member in members(owner)}
    assert set(UNSHOWN) <= held
    assert all(reason.endswith(".") for reason in (*UNSHOWN.values(), *PASSED_ON.values()))
    assert all(found(name)[0] for name in PASSED_ON)


def test_a_name_that_is_not_there_is_found() -> None:
    assert found("gradspec.law.Law.name")[0]
    assert not found("gradspec.law.Law.nmae")[0]
    assert not found("gradspec.lwa.Law")[0]
