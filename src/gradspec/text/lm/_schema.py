"""Check a reply against a JSON schema, with the keywords that structured output uses and no others."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from gradspec.text.lm._schema_check import resolve

Schema = Mapping[str, Any] | bool

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: _is_number(v),
    "integer": lambda v: _is_number(v) and (isinstance(v, int) or v.is_integer()),
}


def parse(text: str, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return the JSON value of a reply and what is wrong with it; a fence of three backquotes is taken off.

    Examples:
        >>> parse('{"score": 11}', {"properties": {"score": {"type": "integer", "maximum": 10}}})
        ({'score': 11}, ['$.score is 11, above the maximum of 10'])
    """
    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", text, re.DOTALL)
    try:
        value = json.loads(fenced[1] if fenced else text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return None, [f"it is not JSON: {error}"]
    try:
        return value, list(_problems(value, schema, "$", schema))
    except RecursionError:
        return None, ["it is nested too deeply to be checked"]


def _problems(value: Any, schema: Schema, where: str, root: Schema) -> Iterator[str]:
    if isinstance(schema, bool):
        if not schema:
            yield f"{where} is not allowed"
        return
    if "$ref" in schema:
        yield from _problems(value, resolve(schema["$ref"], root), where, root)
    for word, argument in schema.items():
        if word in KEYWORDS:
            yield from KEYWORDS[word](value, argument, where, root)
    if isinstance(value, dict) and "additionalProperties" in schema:
        for name in value.keys() - schema.get("properties", {}).keys():
            yield from _problems(value[name], schema["additionalProperties"], f"{where}.{name}", root)


def _type(value: Any, names: Any, where: str, root: Schema) -> Iterator[str]:
    names = [names] if isinstance(names, str) else names
    if not any(TYPES[name](value) for name in names):
        yield f"{where} is {_shown(value)}, not of type {' or '.join(names)}"


def _properties(value: Any, properties: Any, where: str, root: Schema) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in properties.items():
            if name in value:
                yield from _problems(value[name], inner, f"{where}.{name}", root)


def _required(value: Any, names: Any, where: str, root: Schema) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{where} has no {name!r}" for name in names if name not in value)


def _items(value: Any, inner: Any, where: str, root: Schema) -> Iterator[str]:
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _problems(element, inner, f"{where}[{index}]", root)


def _any_of(value: Any, choices: Any, where: str, root: Schema) -> Iterator[str]:
    if all(list(_problems(value, choice, where, root)) for choice in choices):
        yield f"{where} is {_shown(value)}, which is none of the {len(choices)} allowed forms"


def _all_of(value: Any, parts: Any, where: str, root: Schema) -> Iterator[str]:
    for part in parts:
        yield from _problems(value, part, where, root)


def _one_of(value: Any, choices: Any, where: str, root: Schema) -> Iterator[str]:
    fits = sum(not list(_problems(value, choice, where, root)) for choice in choices)
    if fits != 1:
        yield f"{where} is {_shown(value)}, which is {fits} of the {len(choices)} forms where one is asked for"


def _not(value: Any, inner: Any, where: str, root: Schema) -> Iterator[str]:
    if not list(_problems(value, inner, where, root)):
        yield f"{where} is {_shown(value)}, which is excluded"


def _limit(
    what: Callable[[Any], Any], applies: Callable[[Any], bool], fails: Callable[[Any, Any], bool], words: str
) -> Callable[[Any, Any, str, Schema], Iterator[str]]:
    def check(value: Any, bound: Any, where: str, root: Schema) -> Iterator[str]:
        if applies(value) and fails(what(value), bound):
            yield f"{where} is {_shown(value)}, {words} {_shown(bound)}"

    return check


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(left: Any, right: Any) -> bool:
    """Return JSON equality: 1 is 1.0, and neither is true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    return bool(left == right)


def _repeats(values: list[Any], wanted: bool) -> bool:
    return wanted and len(set(map(_key, values))) < len(values)


def _key(value: Any) -> Any:
    """Return what is equal for values that are equal in JSON, and can be hashed."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, list):
        return (list, *map(_key, value))
    if isinstance(value, dict):
        return (dict, frozenset((name, _key(inner)) for name, inner in value.items()))
    return value


def _multiple(value: Any, step: Any) -> bool:
    return math.isfinite(value) and Fraction(str(value)) % Fraction(str(step)) == 0  # 0.3 is a multiple of 0.1


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else f"{text[:77]}..."


_text, _array = TYPES["string"], TYPES["array"]
KEYWORDS: dict[str, Callable[[Any, Any, str, Schema], Iterator[str]]] = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "items": _items,
    "anyOf": _any_of,
    "allOf": _all_of,
    "oneOf": _one_of,
    "not": _not,
    "enum": _limit(lambda v: v, lambda v: True, lambda v, xs: not any(_same(v, x) for x in xs), "none of"),
    "const": _limit(lambda v: v, lambda v: True, lambda v, x: not _same(v, x), "not"),
    "minimum": _limit(lambda v: v, _is_number, lambda v, b: v < b, "below the minimum of"),
    "maximum": _limit(lambda v: v, _is_number, lambda v, b: v > b, "above the maximum of"),
    "exclusiveMinimum": _limit(lambda v: v, _is_number, lambda v, b: v <= b, "not above"),
    "exclusiveMaximum": _limit(lambda v: v, _is_number, lambda v, b: v >= b, "not below"),
    "multipleOf": _limit(lambda v: v, _is_number, lambda v, b: not _multiple(v, b), "no multiple of"),
    "minLength": _limit(len, _text, lambda n, b: n < b, "shorter than"),
    "maxLength": _limit(len, _text, lambda n, b: n > b, "longer than"),
    "pattern": _limit(lambda v: v, _text, lambda v, p: re.search(p, v) is None, "which does not match"),
    "minItems": _limit(len, _array, lambda n, b: n < b, "with fewer elements than"),
    "maxItems": _limit(len, _array, lambda n, b: n > b, "with more elements than"),
    "uniqueItems": _limit(lambda v: v, _array, _repeats, "with an element twice, unique is"),
}
