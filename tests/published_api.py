"""The published pages as data: `published_api.toml`, and which of its classes exist here so far."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Method:
    """One line of a page's list of methods."""

    #: `static`, `classmethod`, or empty where the page prints neither.
    kind: str
    name: str
    #: None where the page prints no parentheses.
    signature: inspect.Signature | None


@dataclass(frozen=True, kw_only=True)
class PublishedClass:
    """One class of a published page, and where it stands here."""

    published: str
    ours: str
    signature: inspect.Signature
    bases: tuple[str, ...]
    methods: tuple[Method, ...]
    attributes: tuple[str, ...]
    #: The keys of its `state_dict`, by the arguments of a call: "(4, 6, 2)".
    state: Mapping[str, tuple[str, ...]]

    @property
    def members(self) -> tuple[str, ...]:
        """The names of its methods and attributes, in the order of the page."""
        return (*(method.name for method in self.methods), *self.attributes)

    def load(self) -> type | None:
        """Return our class, or None if it does not exist yet."""
        module, _, name = self.ours.rpartition(".")
        try:
            found: Any = getattr(importlib.import_module(module), name, None)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise  # the module is there, and something that it imports is not
            return None
        return found


def parse_signature(text: str) -> inspect.Signature:
    """Return the signature that a page prints as "(ctx, x, f=1)"."""
    scope: dict[str, Any] = {}
    exec(f"def printed{text}: ...", scope)
    return inspect.signature(scope["printed"])


def parse_method(line: str) -> Method:
    """Return the method of a line as "static forward(ctx, x)" or "name"."""
    head, bracket, rest = line.partition("(")
    *kind, name = head.split()
    return Method(kind="".join(kind), name=name, signature=parse_signature(bracket + rest) if bracket else None)


def spelled_out(short: str) -> list[str]:
    """Return the keys that "a{1,2}.b" is short for."""
    parts = re.split(r"\{([^}]*)\}", short)
    choices = (part.split(",") if place % 2 else [part] for place, part in enumerate(parts))
    return ["".join(chosen) for chosen in product(*choices)]


def _read(path: Path) -> tuple[PublishedClass, ...]:
    return tuple(
        PublishedClass(
            published=entry["published"],
            ours=entry["ours"],
            signature=parse_signature(entry["signature"]),
            bases=tuple(entry["bases"]),
            methods=tuple(map(parse_method, entry["methods"])),
            attributes=tuple(attribute.partition(":")[0] for attribute in entry["attributes"]),
            state={
                call: tuple(key for short in keys for key in spelled_out(short))
                for call, keys in entry.get("state", {}).items()
            },
        )
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["class"]
    )


CLASSES = _read(Path(__file__).with_suffix(".toml"))
EXISTING = tuple(entry for entry in CLASSES if entry.load() is not None)
