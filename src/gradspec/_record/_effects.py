"""What runs when a module is imported, and may change what other definitions do."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from gradspec._record._mentions import Chain, chain_of

if TYPE_CHECKING:
    from gradspec._record._definitions import Definition

#: Calls of others that mark an object, which its users mention, and enter it nowhere else under a name.
_MARKS = ("torch.compiler.", "torch._dynamo.", "functools.", "contextlib.", "dataclasses.", "typing.", "abc.")
_REGISTERS = ("register", "impl", "define", "library")


def registers_operators(others: Collection[str]) -> bool:
    """Whether code with these mentions may register an operator that `torch.ops` then finds."""
    return any(name.startswith(("torch.library", "torch._library", "torch.ops")) for name in others)


def is_registration(definition: Definition, others: Collection[str]) -> bool:
    """Whether a statement enters something in a register of others, where nobody mentions it any more."""
    calls = definition.decorators or ([definition.node.value] if isinstance(definition.node, ast.Expr) else [])
    for call in calls:
        chain = chain_of(call.func if isinstance(call, ast.Call) else call)
        meant = [o for o in others if chain and o.split(".")[-len(chain[1:]) or len(o) :] == list(chain[1:])]
        named = any(word in part.lower() for part in chain for word in _REGISTERS)
        if named and meant and not any(other.startswith(_MARKS) or registers_operators([other]) for other in meant):
            return True
    return False


def may_attach(
    definition: Definition,
    ours_by_name: Mapping[Chain, list[Definition]],
    ours: Collection[Definition],
    reached: Mapping[Definition, Any],
    resolved: Callable[[Definition], Any],
) -> bool:
    """Whether a statement that runs on import may change something that was reached.

    Args:
        definition: a statement with an effect, or something that is decorated.
        ours_by_name: what it mentions of ours.
        ours: the same, without the names.
        reached: what was reached.
        resolved: gives what the mentions of a definition mean.
    """
    if definition.has_effect:
        if isinstance(definition.node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete):
            roots = _set_roots(definition.node)
            owners = [target for name, found in ours_by_name.items() if name[0] in roots for target in found]
            return not owners or any(owner in reached for owner in owners)
        return not ours or any(target in reached for target in ours)
    for decorator in definition.decorators:
        chain = chain_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
        targets = [t for name, found in ours_by_name.items() if chain and name[0] == chain[0] for t in found]
        if len(chain) > 1 and any(target in reached for target in targets):
            return True  # `@scale.register_fake`
        if any(variable in reached for target in targets for variable in _changed_by(target, resolved)):
            return True
    return False


def _set_roots(node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete) -> set[str]:
    """Return the names of what a statement sets an attribute or an item of."""
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
    parts = [part for target in targets for part in ast.walk(target)]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _changed_by(function: Definition, resolved: Callable[[Definition], Any], depth: int = 3) -> set[Definition]:
    """Return the variables of modules that a function changes, itself or by a function that it mentions."""
    found: set[Definition] = set()
    for chain, targets in resolved(function).ours.items():
        for target in targets:
            if isinstance(target.node, ast.Assign | ast.AnnAssign):
                found |= {target} if chain[0] in function.changes else set()
            elif depth and isinstance(target.node, ast.FunctionDef) and target is not function:
                found |= _changed_by(target, resolved, depth - 1)
    return found
