"""Shared parts of the laws on transforms: a loss to differentiate, and a function that a compiler can trace."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from gradspec.law import HOLDS, Finding, Reason, Status, Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._dense import dense
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind
from gradspec.laws.tensor.support._plain_forward import detached_forward, without_custom_gradient
from gradspec.laws.tensor.support._reference import (
    is_stand_in,
    moving_state,
    on_spec_side,
    plain_call,
    plain_value,
    stop,
)
from gradspec.spec import FunctionSpec

#: The likely cause where the gradients are those of plain forward, which was seen.
DROPPED = Reason(
    kind="dropped",
    words="the custom gradient is dropped silently: the plain derivative of forward is applied, or none at all",
)

#: What is said where a batch is wrong without a compiler, too.
EAGER = Reason(kind="another batch", words="so it is without torch.compile: a batch of this size shows it")

#: What is said where torch.compile refuses the whole function, and is right where it may break the graph.
BREAKS = "right, but uncompiled, since it breaks the graph: torch.compile(fullgraph=True)"


def plains_of(spec: FunctionSpec) -> tuple[Callable[..., Any], ...]:
    """Return what forward computes, as functions without a custom gradient: as it is declared, and as it is written.

    These differ where forward detaches what it computes; the last one passes no gradient through any Function.
    """

    def as_written(*args: Any) -> Any:
        return without_custom_gradient(spec.function, *args)

    def cut(*args: Any) -> Any:
        return without_custom_gradient(spec.function, *args, forward_of=detached_forward)

    return (as_written, cut) if is_stand_in(spec.primal) else (spec.primal, as_written, cut)


def of_moved_state(trial: Trial, inputs: Inputs, finding: Finding) -> Finding:
    """Return what is said of forward that runs twice: a second run begins with the state that the first one moved."""
    if finding.status is not Status.BROKEN or not moving_state(trial.spec) or "raised" in finding.details:
        return finding
    args = inputs.args()
    first, moved, afresh = (
        [t.detach().clone() for t in outputs(trial.spec.function(*given))] for given in (args, args, inputs.args())
    )
    if not all(map(torch.equal, first, afresh)) or all(map(torch.equal, first, moved)):
        return finding  # it is something else that the second run finds
    said = f"the second run of forward begins with state of the module that the first one has moved: {finding.message}"
    return Finding(status=Status.NOT_PROMISED, message=said, details={"raised": ""})


def frozen(function: Callable[..., Any], inputs: Inputs) -> Callable[..., Any]:
    """Return the function of the differentiated arguments; the others are constants that a tracer can see."""
    names, values = list(inputs.values), list(inputs.args())
    places = [names.index(name) for name in inputs.wrt]

    def call(*tensors: Tensor) -> Any:
        args = list(values)
        for place, tensor in zip(places, tensors, strict=True):
            args[place] = tensor
        return function(*args)

    return call


def exported(module: Module, args: tuple[Any, ...], *, strict: bool = False) -> Module:
    """Return the module of an exported program. What torch says of a refusal is dropped: the verdict says it."""
    torch._dynamo.reset()
    # It prints the graph that it has so far to stderr (`_log_export_wrapper` in torch/export/_trace.py).
    with silenced("torch.export"), redirect_stderr(StringIO()):
        return torch.export.export(module, args, strict=strict).module()


@contextmanager
def silenced(name: str) -> Iterator[None]:
    """Drop what a part of torch logs."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def tracing_backend(trial: Trial) -> str:
    """Return the backend of a compiled transform: it is in Dynamo's tracing, behind any backend, that gradients go."""
    return "eager" if trial.profile.backend == "aot_eager" else trial.profile.backend


def weights(trial: Trial, inputs: Inputs) -> tuple[Tensor, ...]:
    """Return random weights of the shapes of the outputs."""
    return like(outputs(on_spec_side("primal", trial.spec.primal, *inputs.args())), trial.seed)


def weighted(function: Callable[..., Any], v: tuple[Tensor, ...]) -> Callable[..., Tensor]:
    """Return the real loss `sum(v * y)` of the function's outputs."""

    def loss(*tensors: Tensor) -> Tensor:
        y = outputs(function(*tensors))
        total = (v[0].conj() * y[0]).sum()
        for a, t in zip(v[1:], y[1:], strict=True):
            total = total + (a.conj() * t).sum()
        return torch.real(total)

    return loss


def expected_gradients(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the gradients of the weighted loss of the reference; in a half type those of the plain call."""
    leaves = inputs.leaves()
    loss = weighted(frozen(plain_call(trial.spec, inputs), inputs), v)(*leaves.values())
    got = gradients((loss,), leaves, (torch.ones_like(loss),))
    return tuple(torch.zeros_like(leaf) if got[n] is None else got[n] for n, leaf in leaves.items())  # type: ignore[misc]  # the None is replaced


def judge(
    trial: Trial,
    inputs: Inputs,
    way: str,
    got: tuple[Tensor | None, ...],
    expected: tuple[Tensor, ...],
    *,
    of: tuple[Tensor, ...] = (),
) -> Finding:
    """Compare gradients by argument.

    Args:
        trial: the call.
        inputs: its arguments.
        way: the name of the transform, for the message.
        got: the gradients.
        expected: the right ones.
        of: what was differentiated: a Function in its graph is not dropped.
    """
    for name, mine, theirs in zip(inputs.wrt, got, expected, strict=True):
        finding = compare(trial, f"gradient of `{name}` under {way}", dense(mine), theirs, is_derivative=True)
        if finding is not HOLDS:
            return finding.because(DROPPED) if _is_dropped(trial, inputs, got, of) else finding
    return HOLDS


def _is_dropped(trial: Trial, inputs: Inputs, got: tuple[Tensor | None, ...], of: tuple[Tensor, ...]) -> bool:
    """Whether these are the gradients of plain forward, or none at all, and no graph leads through the Function."""
    if trial.spec.autograd_function in classes_behind(of):
        return False
    if all(mine is None for mine in got):
        return True
    return any(_are_of(trial, inputs, got, plain) for plain in plains_of(trial.spec))


def _are_of(trial: Trial, inputs: Inputs, got: tuple[Tensor | None, ...], function: Callable[..., Any]) -> bool:
    """Whether gradients are those of a plain function."""
    v, leaves = weights(trial, inputs), inputs.leaves()
    try:
        loss = weighted(frozen(function, inputs), v)(*leaves.values())
        plain = gradients((loss,), leaves, (torch.ones_like(loss),)).values()
    except Exception:
        return False
    pairs = [
        (torch.zeros_like(leaf) if mine is None else mine.detach(), torch.zeros_like(leaf) if right is None else right)
        for leaf, mine, right in zip(leaves.values(), got, plain, strict=True)
    ]
    return all(mine.shape == right.shape and torch.allclose(mine, right.to(mine.dtype)) for mine, right in pairs)


def judge_run(trial: Trial, inputs: Inputs, way: str, function: Callable[..., Any]) -> Finding:
    """Run a transformed function forward and backward, and compare value and gradients."""
    # On leaves: a forward may ask which argument requires grad, and in an audit it is its own primal.
    expected = tuple(stop(t) for t in outputs(plain_value(trial.spec, inputs)(*inputs.args(inputs.leaves()))))
    leaves = inputs.leaves()
    y = outputs(function(*leaves.values()))
    for mine, theirs in zip(y, expected, strict=True):
        if (finding := compare(trial, f"value under {way}", mine, theirs)) is not HOLDS:
            return finding
    v = like(expected, trial.seed)
    right = expected_gradients(trial, inputs, v)  # first: the function may change v
    return judge(trial, inputs, way, tuple(gradients(y, leaves, v).values()), right, of=y)


def of_a_plain_call(trial: Trial, inputs: Inputs, way: str, finding: Finding) -> Finding:
    """Return what a plain call of a batch shows, if it is as wrong as under torch.compile."""
    if finding.status is not Status.BROKEN:
        return finding
    plain: Finding | None = quietly(
        lambda: judge_run(trial, inputs, f"a plain call, {way}", frozen(trial.spec.function, inputs))
    )
    return finding if plain is None or plain.status is not Status.BROKEN else plain.because(EAGER)


def is_right_in_pieces(trial: Trial, inputs: Inputs, way: str) -> bool:
    """Whether torch.compile is right where it may break its graph, and call what it cannot trace as it is."""
    torch._dynamo.reset()
    compiled = torch.compile(frozen(trial.spec.function, inputs), backend=trial.profile.backend)
    with silenced("torch._dynamo"):  # which says where it breaks the graph, and how to have it trace more
        return quietly(lambda: judge_run(trial, inputs, way, compiled)) is HOLDS
