"""Measure plain calls of a function: where gradients flow, what is shared, whether noise is drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._audit._dependence import fixed_gradient, infinite_at_zero, moves_with, zero_gradient
from gradspec._audit._graphless import Graphless, graphless_in
from gradspec._audit._hidden import hidden_in_lists
from gradspec._audit._lost import Lost, is_delivered, lost_of, stopped_in
from gradspec._audit._lost_within import lost_within
from gradspec._audit._measured import Measured
from gradspec._audit._refusals import refused_backward
from gradspec._audit._single import in_float32
from gradspec._audit._subject import Subject
from gradspec._audit._trials import copied, flat_trial, takes_gradient
from gradspec._audit._uncalled import uncalled
from gradspec.law import Finding, Trial, shown
from gradspec.laws.tensor.support._call import Inputs, differentiable, gradients, like, outputs
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._form import rules_of
from gradspec.laws.tensor.support._generators import seeded
from gradspec.laws.tensor.support._graph import classes_behind
from gradspec.laws.tensor.support._held_still import held_still
from gradspec.laws.tensor.support._memory import overlap
from gradspec.laws.tensor.support._new_memory import of_nan
from gradspec.laws.tensor.support._reference import moving_state
from gradspec.laws.tensor.support._replay import replayed
from gradspec.laws.tensor.support._slope import moves_smoothly
from gradspec.profile import Profile
from gradspec.spec import Case

#: What torch says of an operator of torch.library without a registered gradient.
NO_FORMULA = "no autograd formula was registered"


def measure(subject: Subject, cases: Sequence[Case], profile: Profile, seed: int) -> Measured:
    """Call a function as a user does, on each case, and differentiate what it returns."""
    asked = [name for name in subject.signature.parameters if name not in subject.fixed]
    every = tuple(name for name in asked if any(takes_gradient(subject, case, name) for case in cases))
    try:
        nested = any(_is_nested(subject.call(*copied(case.args), **copied(dict(case.kwargs)))) for case in cases)
        trials = [flat_trial(subject, case, Measured(wrt=every, nested=nested), profile, seed) for case in cases]
        seen = [_Seen.of(trial) for trial in trials]
    except _NoArithmeticError as error:
        return Measured(wrt=every, no_arithmetic=str(error))
    except (Exception, SystemExit) as error:
        trained = {subject.parameter_of(leaf) for leaves in subject.marked.values() for leaf in leaves}
        if trained and (others := frozenset(every) - trained):  # it may refuse a gradient that nobody wants of it
            measured = measure(replace(subject, fixed=subject.fixed | others), cases, profile, seed)
            if not measured.raised:
                return measured
        of_backward = refused_backward(error.__cause__ or error) if isinstance(error, _BackwardError) else None
        return Measured(wrt=every, raised=str(error) if of_backward else shown(error), refused=of_backward)
    leaves = {leaf for one in seen for leaf in one.reached}
    fits = {leaf: _parameter(leaf, every) for leaf in leaves}
    shared = next((name for one in seen for name in one.shared), None)
    measured = Measured(
        wrt=tuple(name for name in every if name in fits.values()),
        partly=_partly(subject, trials, every, leaves),
        view_of=_parameter(shared, tuple(subject.signature.parameters)) if shared else None,
        noisy_forward=any(one.noisy_forward for one in seen),
        noisy_backward=any(one.noisy_backward for one in seen),
        stateful=any(one.stateful for one in seen),
        stateful_backward=any(one.stateful_backward for one in seen),
        other_dtype=next((one.other_dtype for one in seen if one.other_dtype), None),
        moved=tuple(dict.fromkeys(name for one in seen for name in one.moved)),
        is_partly_finite=any(one.is_partly_finite for one in seen),
        nested=nested,
        rules=tuple(dict.fromkeys(rule for one in seen for rule in one.rules)),
    )
    if not measured.stateful:
        measured = _with_lost(measured, subject, cases, replace(measured, wrt=every), profile, seed)
    if not measured.is_repeatable:
        return measured
    inputs = [Inputs.of(trial) for trial in trials]
    names = tuple(dict.fromkeys(name for given in inputs for name in given.wrt))
    rest = tuple(name for name in names if name not in leaves)

    def where(holds: Callable[..., bool], asked: tuple[str, ...], combine: Callable[[Any], bool]) -> tuple[str, ...]:
        pairs = list(zip(trials, inputs, strict=True))
        return tuple(name for name in asked if combine(holds(t, i, name) for t, i in pairs if name in i.wrt))

    def is_smooth(trial: Trial, given: Inputs, name: str) -> bool:
        return moves_smoothly(trial.spec.function, given, name, trial.seed)

    used, ignored = where(moves_with, names, any), where(is_smooth, rest, any)
    delivered = where(is_delivered, ignored, all)
    held = {name for case, trial in zip(cases, trials, strict=True) for name in hidden_in_lists(subject, case, trial)}
    lost = [name for name in (ignored if leaves else used) if _parameter(name, every) in held]
    return replace(
        measured,
        ignored=tuple(name for name in ignored if name not in (*lost, *delivered)),
        hidden=tuple(dict.fromkeys(_parameter(name, every) for name in lost)),
        unused=tuple(name for name in names if name not in used),
        zero=where(zero_gradient, tuple(name for name in names if name in leaves), all),
        fixed=where(fixed_gradient, tuple(name for name in names if name in leaves), all),
        in_float32=in_float32(trials),
        infinite_at_zero=where(infinite_at_zero, tuple(name for name in names if name in leaves), any),
    )


def _partly(
    subject: Subject, trials: Sequence[Trial], every: tuple[str, ...], reached: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return the marked tensors of arguments that hold several, if a call marks some."""
    marked = {leaf for leaves in subject.marked.values() for leaf in leaves}
    leaves = dict.fromkeys(leaf for trial in trials for leaf in Inputs.of(trial).wrt)
    asked: dict[str, tuple[str, ...]] = {}
    for name in every if marked else ():
        mine = [leaf for leaf in leaves if leaf != name and _parameter(leaf, every) == name]
        some = tuple(f"{name}[{leaf[len(name) + 1 :]}]" for leaf in mine if leaf in reached or leaf in marked)
        if len(some) < len(mine):
            asked[name] = some
    return asked


def _with_lost(
    measured: Measured, subject: Subject, cases: Sequence[Case], still: Measured, profile: Profile, seed: int
) -> Measured:
    """Return what was measured with the gradients that are lost, of calls whose noise is held still."""
    lost, found, stopped, graphless = list[Lost](), dict[str, Finding](), dict[str, str](), list[Graphless]()
    for case in cases:
        trial = flat_trial(subject, case, still, profile, seed)
        # An operator without a gradient, a graph that serves once: for the laws to say.
        with suppress(Exception):
            if (finding := uncalled(subject, trial)) is not None:
                found[case.name] = finding
        with suppress(Exception):
            lost += lost_of(subject, trial)
        with suppress(Exception):
            lost += lost_within(subject, trial)
        with suppress(Exception):
            stopped |= stopped_in(subject, trial)
        with suppress(Exception):
            graphless += graphless_in(subject, trial)
    return replace(
        measured,
        lost=tuple(lost),
        uncalled=found,
        stopped=stopped,
        graphless=tuple(graphless),
    )


class _NoArithmeticError(Exception):
    """An output has a dtype that torch stores only: its text says which."""


class _BackwardError(Exception):
    """The backward pass of a plain call raised: its text says what."""


@dataclass(frozen=True)
class _Seen:
    """Measurements of the calls of one case."""

    #: The arguments that a gradient reaches.
    reached: tuple[str, ...]
    #: The arguments with which an output shares memory.
    shared: tuple[str, ...]
    #: The buffers of a module that the call has changed.
    moved: tuple[str, ...]
    noisy_forward: bool
    noisy_backward: bool
    stateful: bool
    stateful_backward: bool
    #: The dtype of an output that has another one than the arguments, and theirs.
    other_dtype: tuple[str, str] | None
    is_partly_finite: bool
    #: The fields of `Supports` for which a Function of the call writes a rule.
    rules: tuple[str, ...]

    @classmethod
    def of(cls, trial: Trial) -> _Seen:
        function, inputs, seed = trial.spec.function, Inputs.of(trial), trial.seed
        leaves = inputs.leaves()
        args = inputs.args(leaves)
        y = outputs(function(*args))
        if narrow := [t.dtype for t in y if isinstance(t, Tensor) and t.requires_grad and t.dtype.itemsize == 1]:
            raise _NoArithmeticError(str(narrow[0]).removeprefix("torch."))
        given, moving = dict(zip(inputs.values, args, strict=True)), moving_state(trial.spec)
        moved = [name for name, arg in given.items() if name in moving and not _agree((arg,), (inputs.values[name],))]
        shared = [name for name, arg in given.items() if isinstance(arg, Tensor) and any(overlap(t, arg) for t in y)]
        stateful, differs = False, not _agree(y, outputs(function(*inputs.args(inputs.leaves()))))
        if differs:
            with of_nan():  # what differs there is no state: a law judges it
                differs = not _agree(*(outputs(function(*inputs.args(inputs.leaves()))) for _ in range(2)))
        if differs:
            still = replayed(trial).spec.function
            stateful = not _agree(*(outputs(still(*inputs.args())) for _ in range(2)))
        try:
            got = gradients(y, leaves, like(y, seed), retain_graph=True)
        except (Exception, SystemExit) as error:
            if NO_FORMULA not in str(error):
                raise _BackwardError(shown(error)) from error
            got = {}  # an operator that has no gradient: it is judged as a function without
        return cls(
            reached=tuple(name for name, gradient in got.items() if gradient is not None),
            shared=tuple(shared),
            moved=tuple(moved),
            noisy_forward=differs and not stateful,
            noisy_backward=_draws_in_backward(trial, inputs),
            stateful=differs and stateful,
            stateful_backward=not differs and _moves_in_backward(trial, inputs),
            other_dtype=_other_dtype(y, inputs),
            is_partly_finite=len({bool(one) for t in y if differentiable(t) for one in t.isfinite().unique()}) > 1,
            rules=rules_of(classes_behind(y)),
        )


def _other_dtype(y: tuple[Any, ...], inputs: Inputs) -> tuple[str, str] | None:
    given = dict.fromkeys(inputs.values[name].dtype for name in inputs.wrt if inputs.values[name].is_floating_point())
    for t in y:
        if t.is_floating_point() and len(given) == 1 and t.dtype not in given:
            return describe(t).partition("[")[0], describe(inputs.values[inputs.wrt[0]]).partition("[")[0]
    return None


def _draws_in_backward(trial: Trial, inputs: Inputs) -> bool:
    """Whether two backward passes through one graph differ, and agree where the generators are seeded alike."""

    def twice(function: Callable[..., Any]) -> bool:
        leaves = inputs.leaves()
        y = outputs(function(*inputs.args(leaves)))
        found = [gradients(y, leaves, like(y, trial.seed), retain_graph=True) for _ in range(2)]
        return _agree(*(tuple(t for t in one.values() if t is not None) for one in found))

    try:
        if twice(trial.spec.function):
            return False
        return twice(held_still(trial.spec.function, trial.seed, forward=False, backward="other"))
    except Exception:  # that a graph serves once only is for the law retained_graph to say
        return False


def _moves_in_backward(trial: Trial, inputs: Inputs) -> bool:
    """Whether the gradients of two calls differ by more than rounding though the generators are seeded alike."""

    def once() -> tuple[Tensor, ...]:
        leaves = inputs.leaves()
        with seeded(trial.seed):
            y = outputs(trial.spec.function(*inputs.args(leaves)))
            return tuple(g for g in gradients(y, leaves, like(y, trial.seed)).values() if g is not None)

    with suppress(Exception), of_nan():  # what differs for memory that nobody wrote is no state
        first, second = once(), once()
        pairs = zip(first, second, strict=True)
        return not all(a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, equal_nan=True) for a, b in pairs)
    return False


def _is_nested(y: Any) -> bool:
    """Whether an output is neither a tensor nor a tuple of tensors.

    Raises:
        TypeError: there is no tensor in it.
    """
    if not any(isinstance(leaf, Tensor) for leaf in tree_leaves(y)):
        raise TypeError(f"the call returns {type(y).__name__}, and no tensor in it")
    return not all(isinstance(t, Tensor) for t in outputs(y))


def _parameter(leaf: str, names: tuple[str, ...]) -> str:
    """Return the parameter that a leaf belongs to: `xs` of `xs_0`."""
    fitting = [name for name in names if leaf == name or leaf.startswith(f"{name}_")]
    return max(fitting, key=len)


def _agree(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return len(first) == len(second) and all(
        a.shape == b.shape and torch.equal(_numbers(a), _numbers(b)) for a, b in zip(first, second, strict=True)
    )


def _numbers(tensor: Tensor) -> Tensor:
    """Return the numbers of a tensor, NaN as 0; of eight bits, in which torch does not compute, in double precision."""
    plain = tensor.detach()
    return (plain.double() if plain.is_floating_point() and plain.itemsize == 1 else plain).nan_to_num()
