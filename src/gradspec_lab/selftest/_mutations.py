"""The mutations: what goes wrong in custom Functions, in general, as a table."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.selftest._mutation import (
    Mutation,
    after_setup,
    before_backward,
    before_forward,
    on_class,
    on_gradients,
    on_output,
    on_tangent,
)

MILLIONTH = 1 + 1e-6


class _AllNeeded:
    """A ctx that claims that every gradient is needed."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self.needs_input_grad = (True,) * len(ctx.needs_input_grad)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)


def _one_coordinate(g: Tensor, _: Tensor) -> Tensor:
    changed = g.clone(memory_format=torch.contiguous_format)
    changed.view(-1)[-1:].mul_(MILLIONTH)
    return changed


def _unscaled(g: Tensor, v: Tensor) -> Tensor:
    return v.clone() if v.shape == g.shape else g / 3


def _drift(ctx: Any, _: Tensor) -> None:
    ctx.drift = getattr(ctx, "drift", 0) + 1


def _drifting(cls: type, backward: Any) -> Any:
    def mutant(ctx: Any, *y_bars: Tensor) -> Any:
        _drift(ctx, y_bars[0])
        gradients = backward(ctx, *y_bars)
        found = gradients if isinstance(gradients, tuple) else (gradients,)
        return tuple(g * ctx.drift if isinstance(g, Tensor) else g for g in found)

    return mutant


def _reversed(g: Tensor, v: Tensor) -> Tensor:
    return g.flatten().flip(0).view_as(g)


def _random(g: Tensor, v: Tensor) -> Tensor:
    return g * torch.rand(()).to(g.dtype)


def _doubled(ctx: Any, v: Tensor) -> None:
    v.data.mul_(2)


def _moved(ctx: Any, v: Tensor) -> None:
    v.data.mul_(1 + 1e-9)


def _viewed(ctx: Any, v: Tensor) -> Tensor:
    return v.view(-1).view(v.shape)


def _row(ctx: Any, v: Tensor) -> Tensor:
    return v + 0 * v[:0].sum()


def _moved_input(x: Tensor) -> None:
    x.data.mul_(1 + 1e-9)


def _alias(y: Tensor, x: Tensor) -> Tensor:
    return x.data if y.shape == x.shape else y


def _tangent_of_the_primal(d: Tensor, x: Tensor) -> Tensor:
    if x.shape == d.shape:
        return x.clone()
    return x.sum(-1) if x.shape[:-1] == d.shape else 2 * d


def _single(t: Tensor) -> Tensor:
    return t.to(torch.complex64 if t.is_complex() else torch.float32)


def _clipped(g: Tensor, _: Tensor) -> Tensor:
    if g.is_complex():
        return torch.complex(g.real.clamp(-1e-2, 1e-2), g.imag.clamp(-1e-2, 1e-2))
    return g.clamp(-1e-2, 1e-2)


def _all_needed(cls: type, backward: Any) -> Any:
    return lambda ctx, *y_bars: backward(_AllNeeded(ctx), *y_bars)


def _has_apply(cls: type) -> bool:
    return "apply" in vars(cls)


def _has_vmap_rule(cls: Any) -> bool:
    return bool(cls.generate_vmap_rule)


def _is_allowed_in_graph(cls: type) -> bool:
    return id(cls) in torch._dynamo.trace_rules._allowed_callable_ids


def _no_vmap_rule(cls: Any) -> None:
    cls.generate_vmap_rule = False


def _not_allowed_in_graph(cls: type) -> None:
    torch._dynamo.trace_rules._allowed_callable_ids.remove(id(cls))


def _no_export_branch(cls: type) -> None:
    torch.compiler.is_exporting = lambda: False


def _positional_only(cls: Any) -> None:
    apply = inspect.getattr_static(cls, "apply")  # without `__func__` where torch has it in C: from 2.14 on
    cls.apply = classmethod(lambda c, *args: apply.__get__(None, c)(*args))


def _keep_output(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.kept = output


def _keep_input(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.kept = next(value for value in inputs if isinstance(value, Tensor))


MUTATIONS = (
    # values
    Mutation(name="value_off_by_a_millionth", method="forward", change=on_output(lambda y, x: y * MILLIONTH)),
    Mutation(name="value_in_float32", method="forward", change=on_output(lambda y, x: _single(y))),
    Mutation(name="value_negated", method="forward", change=on_output(lambda y, x: -y)),
    Mutation(name="value_random", method="forward", change=on_output(lambda y, x: y * (1 + 1e-3 * torch.rand(())))),
    # the gradient
    Mutation(name="sign_flipped", method="backward", change=on_gradients(lambda g, v: -g)),
    Mutation(name="gradient_halved", method="backward", change=on_gradients(lambda g, v: g / 2)),
    Mutation(name="gradient_off_by_a_millionth", method="backward", change=on_gradients(lambda g, v: g * MILLIONTH)),
    Mutation(name="one_coordinate_off_by_a_millionth", method="backward", change=on_gradients(_one_coordinate)),
    Mutation(name="factor_dropped", method="backward", change=on_gradients(_unscaled)),
    Mutation(name="gradient_zero", method="backward", change=on_gradients(lambda g, v: torch.zeros_like(g))),
    Mutation(name="gradient_lost", method="backward", change=on_gradients(lambda g, v: None)),
    Mutation(name="gradient_clipped", method="backward", change=on_gradients(_clipped)),
    Mutation(name="operand_reversed", method="backward", change=on_gradients(_reversed)),
    Mutation(name="gradient_in_float32", method="backward", change=on_gradients(lambda g, v: _single(g))),
    Mutation(name="gradient_of_another_shape", method="backward", change=on_gradients(lambda g, v: g.unsqueeze(0))),
    Mutation(name="gradient_detached", method="backward", change=on_gradients(lambda g, v: g.detach())),
    Mutation(name="gradient_random", method="backward", change=on_gradients(_random)),
    Mutation(name="drifts_with_each_backward", method="backward", change=_drifting),
    Mutation(name="needs_input_grad_ignored", method="backward", change=_all_needed, several=True),
    # the cotangent
    Mutation(name="cotangent_scaled_in_place", method="backward", change=before_backward(_doubled)),
    Mutation(name="cotangent_off_in_place", method="backward", change=before_backward(_moved)),
    Mutation(name="cotangent_through_data", method="backward", change=before_backward(lambda c, v: v.data)),
    Mutation(
        name="cotangent_viewed",
        method="backward",
        change=before_backward(_viewed),
        spares=("InstanceDiscriminationLoss", "LinearCrossEntropy"),  # one dimension always has such a view
    ),
    # forward mode
    Mutation(name="tangent_negated", method="jvp", change=on_tangent(lambda d, x: -d)),
    Mutation(name="tangent_off_by_a_millionth", method="jvp", change=on_tangent(lambda d, x: d * MILLIONTH)),
    Mutation(name="tangent_of_the_primal", method="jvp", change=on_tangent(_tangent_of_the_primal)),
    Mutation(name="tangent_zero", method="jvp", change=on_tangent(lambda d, x: torch.zeros_like(d))),
    # effects and protocol
    Mutation(name="input_scaled_in_place", method="forward", change=before_forward(_moved_input)),
    Mutation(
        name="untracked_alias",
        method="forward",
        change=on_output(_alias),
        spares=("InstanceDiscriminationLoss", "LinearCrossEntropy"),  # a loss has another shape than what it is of
    ),
    Mutation(name="input_on_ctx", method="setup_context", change=after_setup(_keep_input)),
    Mutation(name="output_on_ctx", method="setup_context", change=after_setup(_keep_output)),
    Mutation(name="positional_only", method="class", change=on_class(_positional_only), can=_has_apply),
    Mutation(name="reads_a_number", method="forward", change=before_forward(lambda x: x.sum().item())),
    Mutation(name="draws_in_secret", method="forward", change=before_forward(lambda x: torch.rand(()))),
    Mutation(name="prints", method="backward", change=before_backward(lambda c, v: print("backward"))),
    Mutation(
        name="default_dtype_changed",
        method="forward",
        change=before_forward(lambda x: torch.set_default_dtype(torch.float64)),
    ),
    # shapes
    Mutation(name="crashes_on_an_empty_batch", method="forward", change=before_forward(lambda x: x.abs().max())),
    Mutation(name="needs_a_batch_dimension", method="backward", change=before_backward(_row)),
    Mutation(name="input_viewed", method="forward", change=before_forward(lambda x: x.view(-1))),
    # transforms
    Mutation(name="no_vmap_rule", method="class", change=on_class(_no_vmap_rule), can=_has_vmap_rule),
    Mutation(
        name="not_allowed_in_graph", method="class", change=on_class(_not_allowed_in_graph), can=_is_allowed_in_graph
    ),
    Mutation(name="no_export_branch", method="class", change=on_class(_no_export_branch), can=_has_apply),
)
