"""The form in which a Function is written, and the least sound Function of a form: torch treats all of a form alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from types import CodeType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from gradspec.laws.tensor.support._call import outputs
from gradspec.laws.tensor.support._graph import is_of_operator
from gradspec.spec import Case, FunctionSpec


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a transform of torch may need, beside a right forward and a right backward."""

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


_HAS: dict[str, Any] = {
    "setup_context": _own("setup_context"),
    "vmap": lambda cls: cls.generate_vmap_rule or _own("vmap")(cls),
    "jvp": _own("jvp"),
    "allowed": _is_allowed,
    "dirty": _marks_dirty,
    "operator": is_of_operator,
    "differentiable": lambda cls: getattr(cls.backward, "__code__", None) is not _ONCE,
}
_ONCE: CodeType = once_differentiable(lambda ctx: None).__code__


@cache
def sound(form: Form) -> FunctionSpec:
    """Return the spec of the least sound Function of a form: three times x, with the gradient of its square."""
    if form.operator:
        return _spec_of(_sound_operator())
    if form.dirty:
        return _sound_in_place(form)
    if form.overlapping:
        return _sound_frames(form)
    made: dict[str, Any] = {"generate_vmap_rule": form.vmap}

    def keep(ctx: Any, x: Tensor) -> None:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    def combined(ctx: Any, x: Tensor) -> Tensor:
        keep(ctx, x)
        return 3 * x

    def backward(ctx: Any, y_bar: Tensor) -> Tensor:
        x: Tensor = ctx.saved_tensors[0]
        return 2 * x * y_bar

    if form.setup_context:
        made["forward"] = staticmethod(lambda x: 3 * x)
        made["setup_context"] = staticmethod(lambda ctx, inputs, output: keep(ctx, inputs[0]))
    else:
        made["forward"] = staticmethod(combined)
    made["backward"] = staticmethod(backward if form.differentiable else once_differentiable(backward))
    if form.jvp:
        made["jvp"] = staticmethod(lambda ctx, x_dot: 2 * ctx.saved_tensors[0] * x_dot)
    return _spec_of(_class_of(form, made).apply)


def _class_of(form: Form, made: dict[str, Any]) -> Any:
    function: Any = type("Sound", (Function,), made)
    if form.allowed:
        torch.compiler.allow_in_graph(function)  # type: ignore[no-untyped-call]
    return function


def _sound_in_place(form: Form) -> FunctionSpec:
    """Return the spec of a Function that writes e^x over x, with the gradient that it has."""
    made: dict[str, Any] = {"generate_vmap_rule": form.vmap}

    def keep(ctx: Any, x: Tensor, y: Tensor) -> None:
        ctx.mark_dirty(x)
        ctx.save_for_backward(y)
        ctx.save_for_forward(y)

    def combined(ctx: Any, x: Tensor) -> Tensor:
        keep(ctx, x, x.exp_())
        return x

    def backward(ctx: Any, y_bar: Tensor) -> Tensor:
        y: Tensor = ctx.saved_tensors[0]
        return y * y_bar

    if form.setup_context:
        made["forward"] = staticmethod(lambda x: x.exp_())
        made["setup_context"] = staticmethod(lambda ctx, inputs, output: keep(ctx, inputs[0], output))
    else:
        made["forward"] = staticmethod(combined)
    made["backward"] = staticmethod(backward if form.differentiable else once_differentiable(backward))
    if form.jvp:
        made["jvp"] = staticmethod(lambda ctx, x_dot: x_dot.mul_(ctx.saved_tensors[0]))
    function = _class_of(form, made)
    return _spec_of(lambda x: function.apply(x * 1), primal=_exp, surrogate=_exp)


def _sound_frames(form: Form) -> FunctionSpec:
    """Return the spec of a Function that returns overlapping pairs of columns, as a view, with its own gradient."""
    made: dict[str, Any] = {"generate_vmap_rule": form.vmap}

    def backward(ctx: Any, y_bar: Tensor) -> Tensor:
        return pad(y_bar[..., 0], (0, 1)) + pad(y_bar[..., 1], (1, 0))

    if form.setup_context:
        made["forward"] = staticmethod(_frames)
        made["setup_context"] = staticmethod(lambda ctx, inputs, output: None)
    else:
        made["forward"] = staticmethod(lambda ctx, x: _frames(x))
    made["backward"] = staticmethod(backward if form.differentiable else once_differentiable(backward))
    if form.jvp:
        made["jvp"] = staticmethod(lambda ctx, x_dot: _frames(x_dot))
    copied = {"primal": lambda x: _frames(x).clone(), "surrogate": lambda x: _frames(x).clone()}
    return _spec_of(_class_of(form, made).apply, **copied)


def _frames(x: Tensor) -> Tensor:
    return x.unfold(-1, 2, 1)


def _sound_operator() -> Any:
    """Return an operator of torch.library: three times x, with the gradient of its square."""

    def keep(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, y_bar: Tensor) -> Tensor:
        x: Tensor = ctx.saved_tensors[0]
        return 2 * x * y_bar

    operator = torch.library.custom_op(
        "gradspec::sound", lambda x: 3 * x, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    operator.register_fake(torch.empty_like)
    operator.register_autograd(backward, setup_context=keep)
    return operator


def _exp(x: Tensor) -> Tensor:
    return x.exp()


def _spec_of(function: Any, primal: Any = lambda x: 3 * x, surrogate: Any = lambda x: x * x) -> FunctionSpec:
    def cases(make: Any) -> Iterator[Case]:
        x = [[0.5, -1.25, 1.75], [2.5, 0.75, -0.25]]
        yield Case(name="sound", args=(torch.tensor(x, dtype=torch.float64),))

    return FunctionSpec(name="sound", function=function, primal=primal, surrogate=surrogate, wrt=("x",), cases=cases)
