r"""Every parameter gets a gradient that is finite and not all zero, and a step against it lowers the loss.

Where the loss is flat in small steps, as of spikes or codes, no step is judged.

Why it matters: a parameter that nothing trains costs memory in the model, the optimizer and every checkpoint, and
distributed training waits for it.

What breaks it: a branch that is never called, `.detach()` or `.data` between it and the loss, a gradient of the wrong
sign.

Remedy: remove unused parameters; name deliberately untrained ones in `ModuleSpec.frozen`.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from gradspec._process_state import seed_torch
from gradspec.law import HOLDS, Finding, Law, ModuleTrial, broken, not_applicable
from gradspec.laws.module.support._build import build, inputs
from gradspec.laws.tensor.support._call import like, outputs
from gradspec.laws.tensor.support._compare import distance, element, largest, unless_zero

#: Training may draw noise: gradients and losses are means over this many draws.
DRAWS = 4
#: Lengths of a step, in units of the parameters' own norm; the loss falls along the gradient if a step is short.
STEPS = (1e-1, 1e-2, 1e-3, 1e-4)
#: A step that no jump lies within.
TINY = 1e-6


def _check(trial: ModuleTrial) -> Finding:
    if trial.case.inputs is None:
        return not_applicable("the case makes no call")
    module = build(trial, training=True)
    parameters, arguments = dict(module.named_parameters()), _arguments(trial)
    if not parameters and not arguments:
        return not_applicable("no parameter, and no input that is differentiated")
    gradients: dict[str, Tensor] = {}
    for draw in range(DRAWS):
        given = inputs(trial)
        leaves = {f"`{name}`": p for name, p in parameters.items() if p.requires_grad}
        leaves |= {f"the argument `{name}`": given[place] for name, place in arguments.items()}
        loss = _loss(trial, module, draw, given)
        if not loss.requires_grad:
            return broken("the output has no graph: nothing gets a gradient")
        for name, got in zip(leaves, torch.autograd.grad(loss, list(leaves.values()), allow_unused=True), strict=True):
            if got is not None:
                gradients[name] = got + gradients.get(name, 0)
    if (finding := _judge_reach(trial, list(leaves), gradients)) is not HOLDS:
        lost = finding.argument in leaves and gradients.get(finding.argument) is None
        return _lost(finding) if lost and _moves(trial, module, finding.argument.strip("`")) else finding
    trained = {name: p for name, p in parameters.items() if f"`{name}`" in gradients}
    return _judge_step(trial, module, trained, gradients) if trained else HOLDS


def _judge_reach(trial: ModuleTrial, names: list[str], gradients: dict[str, Tensor]) -> Finding:
    frozen = {f"`{name}`" for name in trial.spec.frozen}
    for name in names:
        gradient = gradients.get(name)
        if name in frozen:
            if gradient is not None and bool(gradient.any()):
                said = f"{name} gets a gradient, though the spec calls it frozen"
                return broken(said, argument=name, **unless_zero(gradient))
        elif gradient is None:
            return broken(f"no gradient reaches {name}", argument=name, likely="it is never used, or it is detached")
        elif not bool((finite := gradient.isfinite()).all()):
            first = element(int((~finite).flatten().int().argmax()), gradient, gradient)
            place = {"index": first["index"], "got": first["got"], "expected": "a finite number"}
            return broken(f"the gradient of {name} is not finite", argument=name, **place)
        elif not bool(gradient.any()):
            return broken(f"the gradient of {name} is zero in each of {DRAWS} draws", argument=name)
    return HOLDS


def _lost(finding: Finding) -> Finding:
    """Return what is said of a parameter that gets no gradient although the output moves with it."""
    said = f"backward returns no gradient for {finding.argument}, and the output moves with it"
    return replace(finding, message=said, likely="it is detached, or a Function on the way returns None for it")


@torch.no_grad()
def _moves(trial: ModuleTrial, module: nn.Module, name: str) -> bool:
    """Whether the outputs of a module change with a parameter, by more than rounding."""
    parameter = dict(module.named_parameters()).get(name)
    if parameter is None:
        return False
    before = _outputs(trial, module)
    parameter.add_(like((parameter,), trial.seed)[0])
    pairs = zip(before, _outputs(trial, module), strict=True)
    return any(distance(a, b) > torch.finfo(a.dtype).eps ** 0.5 * (largest(a) + largest(b)) for a, b in pairs)


def _outputs(trial: ModuleTrial, module: nn.Module) -> tuple[Tensor, ...]:
    seed_torch(trial.seed)
    y = outputs(module(*inputs(trial)))
    return tuple(t.detach().clone() for t in y if isinstance(t, Tensor) and t.is_floating_point())


@torch.no_grad()
def _judge_step(
    trial: ModuleTrial, module: nn.Module, trained: dict[str, nn.Parameter], gradients: dict[str, Tensor]
) -> Finding:
    steepest = [gradients[f"`{name}`"] for name in trained]
    start = [p.clone() for p in trained.values()]
    unit = torch.stack([p.norm() for p in start]).norm() / torch.stack([g.norm() for g in steepest]).norm()

    def after(step: float) -> float:
        for p, origin, gradient in zip(trained.values(), start, steepest, strict=True):
            p.copy_(origin - step * unit * gradient)
        return _mean_loss(trial, module)

    before, losses = _mean_loss(trial, module), []
    for step in STEPS:
        losses.append(after(step))
        if losses[-1] < before:
            return HOLDS
    if all(after(step) == before for step in (TINY, -TINY)):
        return not_applicable("each parameter gets a gradient, and the loss is flat, as of spikes: no step shows more")
    return broken(
        "no step against the gradient lowers the loss",
        got=f"{losses[-1]:.12g} after a step of {STEPS[-1]}",
        expected=f"less than {before:.12g}",
        likely="the gradient has the wrong sign" if any(after(-step) < before for step in STEPS) else "",
    )


def _mean_loss(trial: ModuleTrial, module: nn.Module) -> float:
    return sum(_loss(trial, module, draw, inputs(trial)).item() for draw in range(DRAWS)) / DRAWS


def _loss(trial: ModuleTrial, module: nn.Module, draw: int, given: tuple[object, ...]) -> Tensor:
    """Return the mean squared distance of the outputs from fixed random targets."""
    seed_torch(trial.seed + draw)
    y = tuple(t for t in outputs(module(*given)) if isinstance(t, Tensor) and t.is_floating_point())
    return torch.stack([(t - target).square().mean() for t, target in zip(y, like(y, trial.seed), strict=True)]).sum()


def _arguments(trial: ModuleTrial) -> dict[str, int]:
    """Return the arguments of the call that are differentiated, and their places."""
    given = inputs(trial)
    named = enumerate(trial.spec.call_parameters()[: len(given)])
    return {name: place for place, name in named if isinstance(given[place], Tensor) and given[place].requires_grad}


GRADIENT_FLOW = Law(
    name="gradient_flow",
    family="modules",
    statement=r"\nabla_\theta L \ne 0, \quad L(\theta - \eta \nabla_\theta L) < L(\theta)",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
)
