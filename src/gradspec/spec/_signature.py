"""A signature as a sheet says it: plain data, from which a page shows the call."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any


def signature_sheet(call: Callable[..., Any]) -> dict[str, Any]:
    """Return the signature of a call as a sheet says it: what a kind gives its sheets as `signature`."""
    return signature_data(inspect.signature(call))


def signature_data(signature: inspect.Signature) -> dict[str, Any]:
    """Return a signature as plain data."""
    parameters = [
        {
            "name": parameter.name,
            "annotation": _annotation(parameter.annotation),
            "default": None if parameter.default is inspect.Parameter.empty else repr(parameter.default),
        }
        for parameter in signature.parameters.values()
    ]
    return {"parameters": parameters, "returns": _annotation(signature.return_annotation)}


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__name__", None) or str(typing.cast("object", annotation))
