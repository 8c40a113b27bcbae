"""A backward that torch never calls: a method of a module, or that of a Function whose forward is called by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction

from gradspec._audit._subject import Subject
from gradspec.law import Finding, Rank, Trial, broken
from gradspec.laws.tensor.support._call import Inputs, differentiable, gradients, like, outputs
from gradspec.laws.tensor.support._compare import largest

#: How far gradients are apart that are not the same.
_APART = 1e-6


def uncalled(subject: Subject, trial: Trial) -> Finding | None:
    """Return the finding of a backward that torch does not call in a call, and that gives another gradient."""
    inputs = Inputs.of(trial)
    said = next(_of_modules(subject, trial, inputs), None)
    if said is None and subject.implementation is None and subject.operator is None:
        said = _of_functions(trial, inputs)
    if said is None:
        return None
    what, why = said
    return broken(what, likely=why, rank=Rank.WRONG, details={"lost": list(inputs.wrt)})


def _of_modules(subject: Subject, trial: Trial, inputs: Inputs) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, and what to do, of each module whose method `backward` is not what torch applies."""
    own = [child for child in subject.layers if callable(getattr(type(child), "backward", None))]
    seen: list[tuple[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...]]] = []

    def note(module: nn.Module, args: tuple[Any, ...], y: Any) -> None:
        given = tuple(t for t in args if differentiable(t) and t.requires_grad)
        seen.append((module, given, tuple(t for t in outputs(y) if differentiable(t))))

    with ExitStack() as stack:
        for child in own:
            stack.callback(child.register_forward_hook(note).remove)
        if own:
            trial.spec.function(*inputs.args(inputs.leaves()))
    for module, x, y in seen:
        if not _agrees(module, x, y, trial.seed):
            name = type(module).__name__
            yield (
                f"torch never calls `{name}.backward`, and the output moves with what {name} is given",
                "a module has no backward: write a torch.autograd.Function, and call its apply in forward",
            )


def _agrees(module: nn.Module, x: tuple[Tensor, ...], y: tuple[Tensor, ...], seed: int) -> bool:
    """Whether a method `backward` returns for a cotangent what torch does, or moves nothing."""
    if not x:
        return True
    v = like(tuple(t.detach() for t in y), seed)
    torch_says = gradients(y, {str(k): t for k, t in enumerate(x)}, v, retain_graph=True)
    try:
        with torch.no_grad():
            returned = outputs(module.backward(*v))  # type: ignore[operator]  # asked before
    except Exception:
        return False
    mine = [t for t in returned if isinstance(t, Tensor)]
    return len(mine) == len(x) and all(map(_are_near, mine, torch_says.values()))


def _of_functions(trial: Trial, inputs: Inputs) -> tuple[str, str] | None:
    """Return what is wrong, and what to do, of a Function whose apply would give another gradient than its forward."""
    with _applied() as redirected:
        after = _gradients(trial, inputs)
    if not redirected or all(map(_are_near, _gradients(trial, inputs), after)):
        return None
    name = redirected[0].__name__
    return (
        f"`{name}.forward` is called without `{name}.apply`, so that torch never calls `{name}.backward`",
        f"call {name}.apply: with it another gradient arrives",
    )


def _gradients(trial: Trial, inputs: Inputs) -> list[Tensor | None]:
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    return list(gradients(y, leaves, like(tuple(t.detach() for t in y), trial.seed)).values())


@contextmanager
def _applied() -> Iterator[list[type[Function]]]:
    """Call `apply` in place of each forward of a Function that is called by itself; give the Functions found so."""
    redirected: list[type[Function]] = []

    def forward_of(cls: type[Function], original: Any) -> Any:
        is_split = cls.setup_context is not Function.setup_context

        def forward(*args: Any, **kwargs: Any) -> Any:
            # apply turns gradients off, and hands over a ctx of its own
            if not torch.is_grad_enabled() or isinstance(next(iter(args), None), BackwardCFunction):
                return original(*args, **kwargs)
            redirected.append(cls)
            return cls.apply(*(args if is_split else args[1:]), **kwargs)  # type: ignore[no-untyped-call]

        return staticmethod(forward)

    with ExitStack() as stack:
        for cls in _own_functions(Function):
            stack.enter_context(patch.object(cls, "forward", forward_of(cls, cls.forward)))
        yield redirected


def _own_functions(cls: type) -> Iterator[type[Function]]:
    """Yield the Functions with a forward and a backward that torch does not define."""
    child: Any
    for child in cls.__subclasses__():
        is_own = "forward" in vars(child) and not child.__module__.startswith(("torch.", "gradspec."))
        if is_own and child.backward is not Function.backward:
            yield child
        yield from _own_functions(child)


def _are_near(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and largest(one - other) <= _APART * max(largest(one), largest(other))
