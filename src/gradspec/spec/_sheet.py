"""Plain-data sheets of specs and laws, from which a page is rendered without importing torch."""

from __future__ import annotations

import inspect
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from gradspec._record import is_beneath, roots_of
from gradspec.spec._base import Spec
from gradspec.spec._dispatch import KEYS, kernels
from gradspec.spec._formula_tex import formula_tex, stated_tex
from gradspec.spec._function import Accuracy, FunctionSpec, Noise
from gradspec.spec._module import ModuleSpec
from gradspec.spec._operator import OperatorSpec
from gradspec.spec._schema import named, signature_of
from gradspec.spec._signature import signature_data
from gradspec.spec._text import TextSpec


def common_sheet(spec: Spec, path: str) -> dict[str, Any]:
    """Return what the sheet of every spec says; `path` is where it is, as `gradspec check` takes it."""
    called = _called(spec)
    return {
        "kind": spec.kind,
        "path": path,
        "under_test": _under_test(spec),
        "version": spec.version,
        "summary": spec.headline,
        "documented": [qualified_name(document) for document in spec.documented],
        "called": qualified_name(called) if _home_of(called) else "",
        "is_class": isinstance(spec.documented[0] if spec.documented else called, type),
        "arguments": [asdict(argument) for argument in spec.arguments],
        "supports": asdict(spec.supports) if spec.supports is not None else {},
        "references": [asdict(reference) for reference in spec.references],
        "differences": [asdict(difference) for difference in spec.differences],
    }


def _called(spec: Spec) -> Any:
    """Return what a call names: the class whose `apply` is called, the function, the class of a module; or None."""
    thing = getattr(spec, "function", None) or getattr(spec, "module", None)
    owner = getattr(thing, "__self__", None)
    return owner if isinstance(owner, type) else thing


def _under_test(spec: Spec) -> str:
    """Return where the code under test is defined: the Function, the module or the callable; "" if it has no name."""
    things = (getattr(spec, role, None) for role in ("autograd_function", "module", "implementation", "function"))
    return next(filter(None, map(_home_of, things)), "")


def _home_of(thing: Any) -> str:
    """Return where a class or function is defined, `module:NAME`; "" for one of torch, a lambda or a local one."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if not isinstance(module, str) or not name or "<" in name or is_beneath(module.partition(".")[0]):
        return ""
    (root,) = roots_of((module,)) or ("",)
    return f"{root}:{name}" if root and not Path(root).is_absolute() else ""


def function_sheet(spec: FunctionSpec) -> dict[str, Any]:
    """Return what the sheet of a function says beside that."""
    return {
        "signature": call_signature(spec),
        "wrt": list(spec.wrt),
        "effects": asdict(spec.effects),
        "accuracy": accuracy_sheet(spec.accuracy),
        "saved": spec.saved.text if spec.saved else "",
        "placements": [{"arguments": dict(way.arguments), "output": way.output} for way in spec.placements],
        "noise": _noise(spec),
        "tex": formula_tex(spec) if spec.formula else {},
        "stated": stated_tex(spec.documented[0]) if spec.documented and not spec.formula else [],
    }


def _noise(spec: FunctionSpec) -> dict[str, Any]:
    if isinstance(spec.noise, Noise):
        return {"names": list(spec.noise.names), "law": spec.noise.law}
    return {"names": [], "law": spec.noise} if spec.noise else {}


def accuracy_sheet(accuracy: Accuracy) -> dict[str, Any]:
    """Return what is declared of the accuracy, dtypes by name."""
    said = {field.name: getattr(accuracy, field.name) for field in fields(accuracy)}
    return {
        name: value if isinstance(value, float) else str(value).removeprefix("torch.")
        for name, value in said.items()
        if value
    }


def operator_sheet(spec: OperatorSpec) -> dict[str, Any]:
    """Return what the sheet of an operator says beside that of a function; it asks torch's dispatcher."""
    return {
        **function_sheet(spec),
        "signature": signature_data(signature_of(spec.overload._schema, annotated=True)),
        "operator": named(spec.overload),
        "schema": str(spec.overload._schema),
        "writes": list(spec.writes),
        "devices": list(spec.devices),
        "dispatch": {key: KEYS[key] for key in kernels(spec.overload)},
    }


def module_sheet(spec: ModuleSpec) -> dict[str, Any]:
    """Return what the sheet of a module says beside that."""
    return {
        "signature": signature_data(inspect.signature(spec.module)) | {"returns": ""},
        "wrt": list(spec.wrt),
        "inputs": [asdict(argument) for argument in spec.inputs],
        "returns": spec.returns,
        "frozen": list(spec.frozen),
        "data_parallel": list(spec.data_parallel),
    }


def text_sheet(spec: TextSpec) -> dict[str, Any]:
    """Return what the sheet of a text Function says beside that."""
    behind = spec.implementation
    signature = inspect.signature(spec.function) if behind is None else behind._call.signature
    return {
        "signature": signature_data(signature),
        "wrt": list(spec.wrt),
        "returns": spec.returns,
        "io_bound": spec.io_bound,
    }


def call_signature(spec: FunctionSpec) -> dict[str, Any]:
    """Return the signature of the call as a user writes it: of an `apply`, that of `forward` without ctx.

    A function with a Function inside it is called by its own arguments, unless the page documents that Function.
    """
    source: Any = spec.autograd_function
    is_inside = source is not getattr(spec.function, "__self__", None) and source not in spec.documented
    if source is None or is_inside or not hasattr(source, "forward"):
        try:
            signature = inspect.signature(spec.function)
        except ValueError:  # a function in C has no signature to read
            signature = inspect.signature(spec.primal)
    else:
        signature = as_applied(source, forward_signature(source))
    return signature_data(signature)


def as_applied(function: Any, signature: inspect.Signature) -> inspect.Signature:
    """Return the signature of `forward` without what an `apply` of the class's own fills in itself.

    An `apply` that names its arguments otherwise than `forward`, or names none, says nothing of that.
    """
    try:
        parameters = inspect.signature(function.apply).parameters
    except (AttributeError, TypeError, ValueError):
        return signature
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    given = {name for name, parameter in parameters.items() if parameter.kind not in rest}
    if not given or not given <= set(signature.parameters):
        return signature
    return signature.replace(parameters=[p for p in signature.parameters.values() if p.name in given])


def forward_signature(function: Any) -> inspect.Signature:
    """Return the arguments of a Function's `forward` as a caller gives them: the combined form takes ctx first."""
    signature = inspect.signature(function.forward)
    skip = 0 if _has_setup_context(function) else 1
    return signature.replace(parameters=list(signature.parameters.values())[skip:])


def _has_setup_context(cls: type) -> bool:
    owner = next((c for c in cls.__mro__ if "setup_context" in vars(c)), object)
    return not owner.__module__.startswith("torch.")


def qualified_name(document: Any) -> str:
    """Return the public import path: private modules re-export through their package."""
    parts = [part for part in document.__module__.split(".") if not part.startswith("_")]
    public = ".".join(parts)
    name = document.__qualname__
    found = getattr(sys.modules.get(public), name.partition(".")[0], None)
    if found is not None:
        return f"{public}.{name}"
    # A package beside the private module may be the one that shows it.
    shown = (
        path
        for path, module in sorted(sys.modules.items())
        if path.startswith(f"{public}.") and "._" not in path and getattr(module, name, None) is document
    )
    return f"{next(shown, document.__module__)}.{name}"
