"""The schema of an operator: its arguments, what it writes, and the operator as a function without effects."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any


def overload_of(operator: Any) -> Any:
    """Return the overload that an operator represents.

    Args:
        operator: "mylib::scale" or "mylib::scale.out", `torch.ops.mylib.scale`, an overload of it, or what
            `torch.library.custom_op` returns.

    Raises:
        ValueError: there is no such operator, or it has several overloads and none is named.
    """
    import torch

    if isinstance(operator, str):
        operator = _named(operator)
    operator = getattr(operator, "_opoverload", operator)  # of what custom_op returns
    if isinstance(operator, torch._ops.OpOverload):
        return operator
    if not isinstance(operator, torch._ops.OpOverloadPacket):
        raise ValueError(
            f'{operator!r} is not an operator: give "namespace::name", torch.ops.namespace.name, '
            "or what custom_op returns"
        )
    names: list[str] = operator.overloads()  # type: ignore[no-untyped-call]
    if "default" not in names and len(names) > 1:
        name = operator._qualified_op_name
        raise ValueError(f"{name} has the overloads {', '.join(names)}: name one, as {name}.{names[0]}")
    return getattr(operator, "default" if "default" in names else names[0])


def _named(name: str) -> Any:
    import torch

    namespace, colons, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    if not (colons and namespace.isidentifier() and packet.isidentifier()):
        raise ValueError(f'{name!r} names no operator: write "namespace::name"')
    found = getattr(getattr(torch.ops, namespace), packet, None)
    if found is None:
        raise ValueError(f"there is no operator {namespace}::{packet}: import the module that registers it first")
    if not overload:
        return found
    if overload not in found.overloads():
        raise ValueError(f"{namespace}::{packet} has the overloads {', '.join(found.overloads())}, and no {overload!r}")
    return getattr(found, overload)


def named(overload: Any) -> str:
    """Return the name of an operator, "mylib::scale", with that of its overload where it is not the default one."""
    return str(overload._name).removesuffix(".default")


def home_of(overload: Any) -> str:
    """Return the module that defines an operator; empty where Python does not know it, as of one in C++."""
    from torch._library.custom_ops import OPDEFS
    from torch._library.simple_registry import singleton

    qualified = named(overload)
    if (defined := OPDEFS.get(qualified)) is not None:
        return str(getattr(defined._init_fn, "__module__", ""))
    fake = singleton.find(qualified).fake_impl.kernel
    file = fake.source.rpartition(":")[0] if fake is not None else ""
    return next((n for n, m in [*sys.modules.items()] if file and getattr(m, "__file__", None) == file), "")


def written(schema: Any) -> tuple[str, ...]:
    """Return the names of the arguments that a schema says are written."""
    return tuple(a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write)


def signature_of(schema: Any, *, annotated: bool = False) -> inspect.Signature:
    """Return the signature of an operator as Python writes it, with the types of the schema where they are asked."""
    empty = inspect.Parameter.empty
    parameters = [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=argument.default_value if argument.has_default_value() else empty,
            annotation=str(argument.real_type) if annotated else empty,
        )
        for argument in schema.arguments
    ]
    returns = ", ".join(str(value.real_type) for value in schema.returns)
    shown = f"({returns})" if len(schema.returns) != 1 else returns
    try:
        return inspect.Signature(parameters, return_annotation=shown if annotated else empty)
    except ValueError:  # a C++ schema may have a default before an argument without one, which Python cannot write
        return inspect.Signature([p.replace(default=empty) for p in parameters])


def functional(overload: Any) -> Callable[..., Any]:
    """Return an operator as a function without effects.

    It hands the operator copies of what the schema says is written, and returns the outputs that are not among these,
    then the copies: a tensor if there is one, a tuple of tensors if there are several. An output that is a
    list of tensors counts as its tensors.
    """
    schema, names = overload._schema, written(overload._schema)
    own = [k for k, value in enumerate(schema.returns) if value.alias_info is None or not value.alias_info.is_write]
    if not names and len(schema.returns) == 1 and not _is_list(schema.returns[0]):
        return overload  # type: ignore[no-any-return]  # of torch, which has no types here
    signature, several = signature_of(schema), len(schema.returns) > 1

    def call(*args: Any, **kwargs: Any) -> Any:
        from torch.utils._pytree import tree_leaves, tree_map

        given = signature.bind(*args, **kwargs)
        for name in names:
            if name in given.arguments:
                given.arguments[name] = tree_map(_copy, given.arguments[name])
        returned = overload(*given.args, **given.kwargs)
        values = returned if several else (returned,)
        kept = [values[k] for k in own] + [given.arguments[name] for name in names if name in given.arguments]
        found = tuple(leaf for leaf in tree_leaves(kept) if leaf is not None)
        return found[0] if len(found) == 1 else found

    call.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect.signature` reads
    call.__module__, call.__qualname__ = "torch.ops", named(overload)
    return call


def _copy(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else value


def _is_list(value: Any) -> bool:
    return "List" in str(value.type)
