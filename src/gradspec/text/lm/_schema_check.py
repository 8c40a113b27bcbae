"""Is a JSON schema one that a reply can be checked against? Said before a call is paid for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: Keywords that do not restrict the values.
NOTES = frozenset({"$schema", "$id", "$comment", "title", "description", "default", "examples", "format"})
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
#: Keywords whose schemas judge the same value, and not one inside of it.
SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "$ref")

Check = Callable[[Any], bool]


def check_schema(schema: object) -> None:
    """Raise ValueError if a schema uses what is not checked, so that nothing passes unchecked, or cannot be followed.

    Examples:
        >>> check_schema({"$ref": "#"})
        Traceback (most recent call last):
        ...
        ValueError: the JSON schema leads back to itself by '#', with no step into the value
    """
    try:
        for inner in _schemas(schema):
            _loops(inner, schema, ())
    except RecursionError:
        raise ValueError("the JSON schema holds itself, or is nested too deeply") from None


def resolve(reference: str, root: Any) -> Any:
    """Return the schema that a reference within the root names.

    Raises:
        ValueError: there is none.
    """
    found = root
    for part in reference.removeprefix("#").removeprefix("/").split("/") if reference not in ("#", "#/") else ():
        try:
            found = found[part.replace("~1", "/").replace("~0", "~")]
        except (LookupError, TypeError):
            raise ValueError(f"the JSON schema refers to {reference!r}, which leads nowhere") from None
    if not isinstance(found, Mapping | bool):
        raise ValueError(f"the JSON schema refers to {reference!r}, which leads nowhere")
    return found


def _schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and each one in it, their keywords looked at."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise ValueError(f"a JSON schema is a mapping, not a {type(schema).__name__}")
    for word, argument in schema.items():
        if word not in ARGUMENTS:
            if word in NOTES:
                continue
            raise ValueError(f"the JSON schema uses {word!r}, which is not supported; known: {sorted(ARGUMENTS)}")
        right, words = ARGUMENTS[word]
        if not right(argument):
            raise ValueError(f"the JSON schema has {argument!r} for {word!r}: {words}")
    yield schema
    for word in ("properties", "$defs"):
        for inner in schema.get(word, {}).values():
            yield from _schemas(inner)
    for word in ("anyOf", "allOf", "oneOf"):
        for inner in schema.get(word, ()):
            yield from _schemas(inner)
    for word in ("items", "not", "additionalProperties"):
        if word in schema:
            yield from _schemas(schema[word])


def _loops(schema: Any, root: Any, path: tuple[str, ...]) -> None:
    """Raise if references lead from a schema back to it without a step into the value."""
    if isinstance(schema, bool):
        return
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference in path:
            raise ValueError(f"the JSON schema leads back to itself by {reference!r}, with no step into the value")
        _loops(resolve(reference, root), root, (*path, reference))
    for word in SAME_VALUE:
        if word in schema and word != "$ref":
            for inner in schema[word] if word != "not" else [schema[word]]:
                _loops(inner, root, path)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and re.compile(value) is not None
    except re.error:
        return False


def _types(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, list | tuple) and bool(names) and all(name in TYPES for name in names)


def _anything(value: Any) -> bool:
    return True


NUMBER = (_number, "it must be a finite number")
COUNT = (_count, "it must be an integer, 0 or more")
SCHEMAS = (lambda v: isinstance(v, list | tuple) and len(v) > 0, "it must be a list of schemas, one or more")
NAMED = (lambda v: isinstance(v, Mapping), "it must map names to schemas")
NAMES = (lambda v: isinstance(v, list | tuple) and all(isinstance(n, str) for n in v), "it must be a list of names")
#: For each keyword what its argument must be; schemas in it are looked at apart.
ARGUMENTS: dict[str, tuple[Check, str]] = {
    "$defs": NAMED,
    "$ref": (
        lambda v: isinstance(v, str) and v.startswith("#"),
        "only references within it (#/...) are followed",
    ),
    "type": (_types, f"the types are {', '.join(TYPES)}"),
    "properties": NAMED,
    "additionalProperties": (_anything, ""),
    "required": NAMES,
    "items": (_anything, ""),
    "anyOf": SCHEMAS,
    "allOf": SCHEMAS,
    "oneOf": SCHEMAS,
    "not": (_anything, ""),
    "enum": (lambda v: isinstance(v, list | tuple), "it must be a list"),
    "const": (_anything, ""),
    "minimum": NUMBER,
    "maximum": NUMBER,
    "exclusiveMinimum": NUMBER,
    "exclusiveMaximum": NUMBER,
    "multipleOf": (lambda v: _number(v) and v > 0, "it must be a number above 0"),
    "minLength": COUNT,
    "maxLength": COUNT,
    "pattern": (_pattern, "it must be a regular expression"),
    "minItems": COUNT,
    "maxItems": COUNT,
    "uniqueItems": (lambda v: isinstance(v, bool), "it must be true or false"),
}
