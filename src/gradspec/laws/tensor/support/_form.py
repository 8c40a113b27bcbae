"""The form in which a Function is written: torch treats all of a form alike."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from types import CodeType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradspec.laws.tensor.support._call import outputs
from gradspec.laws.tensor.support._graph import is_of_operator


@dataclass(frozen=True, kw_only=True)
class Form:
    """The features that a transform of torch may need, beside a right forward and backward."""

    #: `forward` without ctx, and `setup_context` beside it.
    setup_context: bool = False
    #: `generate_vmap_rule`, or a `vmap` of its own.
    vmap: bool = False
    #: A `jvp`.
    jvp: bool = False
    #: Whether Dynamo may put calls of it into a graph as they are.
    allowed: bool = False
    #: A backward that can be differentiated; without it, `once_differentiable`.
    differentiable: bool = True
    #: Whether it writes to its argument: `mark_dirty`.
    dirty: bool = False
    #: Whether torch.library made it, of an operator: what it lacks then, no author can add.
    operator: bool = False
    #: Whether an output is a view in which several elements are one number of the argument: overlapping frames.
    overlapping: bool = False

    @classmethod
    def of(cls, classes: list[type], y: Any) -> Form:
        """Return what several Functions have in common, and what is so of the outputs that they gave."""
        form = cls(**{name: all(has(c) for c in classes) for name, has in _HAS.items()})
        return replace(form, overlapping=any(isinstance(t, Tensor) and _overlaps(t) for t in outputs(y)))

    @property
    def lacking(self) -> tuple[str, ...]:
        """What it lacks of all that a form can have, in the order in which it is easily added."""
        if self.operator:
            return ()
        return tuple(
            name for name in (field.name for field in fields(self)) if not getattr(self, name) and name not in _TRAITS
        )


#: What a form is for a reason, and does not lack where it is otherwise.
_TRAITS = ("dirty", "operator", "overlapping")


def _own(name: str) -> Any:
    return lambda cls: getattr(cls, name, None) is not getattr(Function, name, None)


def _marks_dirty(cls: Any) -> bool:
    codes = (getattr(getattr(cls, name, None), "__code__", None) for name in ("forward", "setup_context"))
    return any("mark_dirty" in code.co_names for code in codes if code is not None)


def _overlaps(y: Tensor) -> bool:
    """Whether two elements lie in one place."""
    if y.layout is not torch.strided or y.numel() < 2:
        return False
    span = 1 + sum((size - 1) * stride for size, stride in zip(y.shape, y.stride(), strict=True))
    return span < y.numel() or (span > y.numel() and _places(y, span) < y.numel())


def _places(y: Tensor, span: int) -> int:
    return len(set(torch.arange(span).as_strided(y.shape, y.stride()).flatten().tolist()))


def _is_allowed(cls: Any) -> bool:
    rules = sys.modules.get("torch._dynamo.trace_rules")
    return rules is not None and id(cls) in rules._allowed_callable_ids.function_ids


def batches(cls: Any) -> bool:
    """Whether a Function says how it is batched, or that torch may find out."""
    return bool(cls.generate_vmap_rule or _own("vmap")(cls))


def rules_of(classes: list[type]) -> tuple[str, ...]:
    """Return the fields of `Supports` for which one of some Functions writes a rule: whoever does means it to work."""
    rules = {"vmap": batches, "forward_mode": _own("jvp")}
    return tuple(field for field, writes in rules.items() if any(writes(cls) for cls in classes))


_HAS: dict[str, Any] = {
    "setup_context": _own("setup_context"),
    "vmap": batches,
    "jvp": _own("jvp"),
    "allowed": _is_allowed,
    "dirty": _marks_dirty,
    "operator": is_of_operator,
    "differentiable": lambda cls: getattr(cls.backward, "__code__", None) is not _ONCE,
}
_ONCE: CodeType = once_differentiable(lambda ctx: None).__code__
