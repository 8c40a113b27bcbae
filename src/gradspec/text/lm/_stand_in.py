"""The stand-in that answers for every model in a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from gradspec.text.lm._schema_check import resolve

if TYPE_CHECKING:
    from gradspec.text.lm._model import Completion, Message

#: From a model, the messages and the options to a reply.
Answering: TypeAlias = "Callable[[Any, tuple[Message, ...], Mapping[str, Any]], Completion]"

_STAND_IN: ContextVar[Answering | None] = ContextVar("gradspec.text.lm.stand_in", default=None)


@contextmanager
def answered_by(answer: Answering | None) -> Iterator[None]:
    """Ask no model in a block; `answer` makes each reply, and with None the models themselves do again."""
    token = _STAND_IN.set(answer)
    try:
        yield
    finally:
        _STAND_IN.reset(token)


def stand_in() -> Answering | None:
    """Return what answers in the place of models here, if something does."""
    return _STAND_IN.get()


def instance(schema: Any, root: Any = None) -> Any:
    """Return a value of a JSON schema: the smallest by its types; it may miss what other keywords ask for.

    Examples:
        >>> instance({"type": "object", "properties": {"score": {"type": "integer", "minimum": 1}}})
        {'score': 1}
    """
    root = schema if root is None else root
    if not isinstance(schema, Mapping):
        return ""
    if "$ref" in schema:
        return instance(resolve(schema["$ref"], root), root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            return instance(schema[word][0], root)
    kind = schema.get("type", "object" if "properties" in schema or "required" in schema else "string")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            parts = {name: {} for name in schema.get("required", ())} | dict(schema.get("properties", {}))
            return {name: instance(part, root) for name, part in parts.items()}
        case "array":
            return [instance(schema.get("items", {}), root)] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", schema.get("exclusiveMinimum", min(1, schema.get("maximum", 1)) - 1) + 1)
        case "boolean":
            return False
        case "null":
            return None
    return "x" * schema.get("minLength", 0)
