"""The least sound Function of a form: what breaks a law for it, too, is nobody's mistake."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from gradspec.laws.tensor.support._form import Form
from gradspec.spec import Case, FunctionSpec, Supports


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

    return FunctionSpec(
        name="sound",
        function=function,
        primal=primal,
        surrogate=surrogate,
        wrt=("x",),
        cases=cases,
        supports=Supports.all(),
    )
