r"""Captured in a CUDA graph and replayed on other values, a call and its backward pass give what they give uncaptured.

The law captures forward and backward together with `torch.cuda.graph`, as the section "Whole-network capture" of
torch's notes on CUDA does. It writes other values into the arguments and cotangents, replays, and compares values,
gradients and declared writes with those of a plain call.

Why it matters: a graph replaces the launches of a training step by one, and runs no Python again: what forward decided
while it was captured is decided for good.

What breaks it: `.item()` and a tensor made of Python numbers, which raise; a number that Python keeps from an earlier
call, and a write that depends on Python state, which go wrong silently.

Remedy: compute with tensors on the device, and allocate constants there, once; keep what changes in a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, fresh, gradients, like, outputs, resembling
from gradspec.laws.tensor.support._captured import Capture, captured, each_once
from gradspec.laws.tensor.support._compare import compare, compare_all

#: The likely cause where a replay goes wrong.
KEPT = "Python kept a number or a decision of the call that was captured: a replay runs only what the device did"


@dataclass(frozen=True)
class _Pass:
    """The results of one call and its backward pass."""

    y: tuple[Tensor, ...]
    x_bar: Mapping[str, Tensor | None]


#: Run forward and backward on arguments and cotangents that stay where they are.
_Run: TypeAlias = Callable[[], _Pass]


def _check(trial: Trial) -> Finding:
    if not torch.cuda.is_available():
        return Finding(status=Status.NOT_MEASURED, message="there is no CUDA device here")
    device = trial.profile.device if trial.profile.device.startswith("cuda") else "cuda"
    with torch.cuda.device(device):
        return judge_replay(trial, device, captured)


def judge_replay(trial: Trial, device: str, capture: Capture) -> Finding:
    """Capture the case on a device, and compare a replay on other values with a plain call on these.

    Args:
        trial: the law's view of the case.
        device: where the arguments are.
        capture: runs a call so that it can be replayed; a test has one for a CPU.
    """
    case = Inputs.of(trial)
    if not any(case.values[name].numel() for name in case.wrt):
        return not_applicable("no argument has an element to be differentiated: a replay is given no other value")
    held = _on(device, case)
    v = like(outputs(trial.spec.function(*held.args(held.leaves()))), trial.seed)
    try:
        static, replay = capture(_run(trial, held, v))
    except Exception as error:
        return raised(error, "capture in a CUDA graph")
    with torch.no_grad():
        _renew(held, _on(device, case), trial.seed)
        for mine, other in zip(v, like(v, trial.seed + 1), strict=True):
            mine.copy_(other)
    plain = _on(device, held)
    expected = _run(trial, plain, tuple(map(fresh, v)))()
    replay()
    return _judge(trial, static, expected, held, plain)


def _on(device: str, case: Inputs) -> Inputs:
    """Return copies of the arguments on a device, leaves where they are differentiated."""
    values = {n: fresh(v).to(device) if isinstance(v, Tensor) else v for n, v in case.values.items()}
    return Inputs(values | {name: values[name].requires_grad_() for name in case.wrt}, case.wrt)


def _run(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...]) -> _Run:
    leaves = {name: inputs.values[name] for name in inputs.wrt}

    def run() -> _Pass:
        y = outputs(trial.spec.function(*inputs.values.values()))
        x_bar = gradients(y, leaves, v)
        # Copies: an output may be a view of an argument, which has other values by the time that it is compared.
        return _Pass(tuple(fresh(t) for t in y), {name: fresh(gradient) for name, gradient in x_bar.items()})

    return run


def _renew(held: Inputs, case: Inputs, seed: int) -> None:
    """Write other values into the arguments that are differentiated, and into the others what they were at first."""
    values = {n: each_once(v) for n, v in case.values.items() if isinstance(v, Tensor)}
    others = resembling(tuple(values[name] for name in case.wrt), seed + 1)
    for name, value in (values | dict(zip(case.wrt, others, strict=True))).items():
        each_once(held.values[name]).copy_(value)


def _judge(trial: Trial, static: _Pass, expected: _Pass, held: Inputs, plain: Inputs) -> Finding:
    for mine, theirs in zip(static.y, expected.y, strict=True):
        if (finding := compare(trial, "value replayed on other values", mine, theirs, likely=KEPT)) is not HOLDS:
            return finding
    what = "gradient replayed on other values"
    if (finding := compare_all(trial, what, static.x_bar, expected.x_bar, likely=KEPT)) is not HOLDS:
        return finding
    for name in trial.spec.effects.writes:
        if not torch.equal(held.values[name], plain.values[name]):
            return broken(f"`{name}` moves otherwise in a replay than in a plain call", argument=name, likely=KEPT)
    return HOLDS


CUDA_GRAPH = Law(
    name="cuda_graph",
    family="device",
    scope=Scope.COMPILE,
    statement=r"\operatorname{replay}(\operatorname{capture}(F, B);\, u, v) = (F(u), B(v;\, u))",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    capability="compile",
)
