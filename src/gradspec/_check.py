"""A single check without a spec: a function, its inputs, and what its value and its gradient should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._asked import Asked
from gradspec._audit._causes import explained
from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._in_place import REFUSED, on_copies, written_by
from gradspec._audit._lost import with_lost
from gradspec._audit._marks import with_marks
from gradspec._audit._measured import Measured
from gradspec._audit._own_dtype import plain_error
from gradspec._audit._probe import measure
from gradspec._audit._references import read_by_the_reference, with_references, zero_in_the_reference
from gradspec._audit._refusals import check_asked, refused, with_unjudged
from gradspec._audit._selection import selected
from gradspec._audit._subject import Subject, subject_of
from gradspec._audit._untrained import refused_untrained
from gradspec._audit._words import in_words, reworded
from gradspec._engine._named import laws_of
from gradspec._engine._plan import plan
from gradspec._engine._verify import run_plan
from gradspec._one_line import in_short
from gradspec._outcome import CheckError
from gradspec.law import Law, Status
from gradspec.laws import LAWS, preserved_process_state
from gradspec.laws.tensor.support._call import bound
from gradspec.profile import Profile, load_profile
from gradspec.render._plain import for_an_exception
from gradspec.spec import Accuracy, Case

#: Why nothing is right of a function whose calls differ.
_STATE = (
    "two calls with the same inputs differ though the generators are seeded alike, so its gradient cannot be compared "
    "with its values: give primal=..., or check a core that takes the state as an argument"
)

#: What the inputs are, where they are a list or a dict.
_IN_A_TUPLE = "a list or a dict is one argument: give several in a tuple"


def check(
    function: Callable[..., Any],
    inputs: Any,
    *,
    primal: Callable[..., Any] | None = None,
    surrogate: Callable[..., Any] | None = None,
    gradient: Callable[..., Any] | None = None,
    accuracy: Accuracy | None = None,
    laws: Sequence[Law | str] | None = None,
    seed: int = 0,
    raise_exception: bool = True,
) -> bool:
    """Hold one call of a function to the laws of plain training, as `torch.autograd.gradcheck` does.

    Args:
        function: a `torch.autograd.Function` class (its `apply` is called), an instance of a module, an operator of
            `torch.library`, or anything that is called with tensors.
        inputs: its positional arguments: a tensor, or a tuple of tensors and anything else. The gradients of those
            tensors that require one are checked, and those of the parameters of a module. Distinct numbers in float64
            show most: a call that shows nothing, such as one of equal numbers, whose order nobody sees, is a finding
            too.
        primal: what forward computes, in plain differentiable torch. Without it the function's own values are taken
            as right.
        surrogate: the map whose derivative backward applies. Without it that is `primal`; without either, backward is
            held to finite differences of the function's own forward pass, and so are the gradients of the parameters
            of a module. Of a module both take its inputs; the gradients of these are checked, and of parameters that
            they read.
        gradient: in place of a surrogate, where backward is the derivative of no map: what backward returns, in plain
            torch, `gradient(inputs, output, cotangent)`, as the field of that name in a `FunctionSpec`.
        accuracy: how accurate its results are, if more than rounding makes them differ, as `Accuracy(rtol=1e-8)` of a
            solver.
        laws: the laws to run, or the names of ours, as ["vjp"]; without them those of values, first derivatives, memory
            and effects in eager mode, which need no compiler.
        seed: of all random numbers.
        raise_exception: whether a finding is an exception; False returns False in its place.

    Returns:
        Whether nothing was found.

    Raises:
        CheckError: something was found; its text is what `gradspec check` prints beneath its table.
        TypeError: `function`, `primal`, `surrogate` or `gradient` cannot be called, or `seed` is no whole number.
        ValueError: no tensor requires a gradient, or one does that an object holds, as a dataclass; the inputs do not
            fit the function, `primal` or `surrogate`; or both `surrogate` and `gradient` are given.

    Example:
        >>> import torch
        >>> import gradspec
        >>> class Round(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x.round()
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad
        >>> x = torch.tensor([0.2, 1.7], dtype=torch.float64, requires_grad=True)
        >>> gradspec.check(Round, x, primal=torch.round, surrogate=lambda x: x)
        True
    """
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed is {in_short(seed)}: give a whole number")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {in_short(seed)}: give a whole number from 0 to {2**32 - 1}")
    if held := next(_within(args), None):
        raise ValueError(f"{held}: pass it as an input of its own, and make the object in a function of it")
    check_asked(function, accuracy)
    if not callable(function):
        raise TypeError(f"function cannot be called: it is {in_short(function)}")
    if laws is not None and not laws:
        raise ValueError("laws is empty, and nothing would be checked: name one, or leave it out")
    try:
        subject, (case,) = subject_of(function, (Case(name="inputs", args=args),))
    except ValueError as error:
        raise ValueError(f"{error}; {_IN_A_TUPLE}" if isinstance(inputs, list | dict) else str(error)) from None
    subject = with_references(subject, (case,), primal=primal, surrogate=surrogate, gradient=gradient)
    subject = replace(subject, accuracy=accuracy or Accuracy())
    profile = load_profile("quick")
    wrt = _requiring_grad(subject, case, profile, seed)
    subject, (case,) = with_marks(subject, (case,))
    case = replace(case, args=tree_map(_apart, case.args))
    measured = _measured(subject, case, profile, seed)
    if REFUSED in measured.raised and (dirty := written_by(subject, (case,))):
        subject = on_copies(subject, dirty)
        measured = _measured(subject, case, profile, seed)
    if measured.refused is not None and measured.refused.status is Status.BROKEN:
        if raise_exception:
            spec = eager_spec(subject, (case,), measured)
            raise CheckError(for_an_exception(refused(spec, measured.refused, profile, seed).report))
        return False
    if measured.raised:
        said = f"{subject.name} raises on these inputs: {measured.raised}"
        raise ValueError(f"{said}; {_IN_A_TUPLE}" if isinstance(inputs, list | dict) else said)
    zero = tuple(name for name in measured.zero if name in wrt)
    if zero and subject.has_reference:
        zero = zero_in_the_reference(subject, case, zero, profile, seed)
    lost = {one.name for one in measured.lost if not subject.has_reference}
    delivered = set(subject.state) - set(measured.wrt)  # to a parameter, by a backward that adds to it by itself
    reached = tuple(name for name in wrt if name not in lost | delivered)  # the lost ones are said, once
    # A part of a gradient that nobody asks for may be stopped.
    measured = replace(measured, wrt=reached or wrt, zero=zero, stopped={})
    spec = eager_spec(subject, (case,), measured)
    asked = [law for law in LAWS if _is_of_training(law, subject)] if laws is None else laws_of(laws)
    chosen = tuple(selected(asked, profile, measured, subject))
    checks = plan([spec], chosen, profile, seed=seed)
    report = run_plan(checks, [spec], chosen, profile, seed=seed, isolate=False)
    if subject.has_reference:  # which says nothing of what a module among the inputs holds
        within = tuple(one for one in measured.lost if one.is_within)
        report = with_lost(report, within, {}, law="vjp")
    else:
        how = Asked(subject=subject, cases=(case,), measured=measured, laws=chosen, profile=profile, seed=seed)
        report = explained(report, how)
        report = reworded(report, in_words(subject, (case,)))
        if measured.stateful_backward:
            report = with_unjudged(report, spec.name, (case,), LAWS, measured)
    # A command cannot make the call of a notebook again.
    report = replace(report, verdicts=tuple(replace(v, rerun="") for v in report.verdicts))
    # A question is not an answer: nothing is called right that is not known to be.
    is_open = any(verdict.status is Status.QUESTION for verdict in report.verdicts)
    has_state = measured.stateful and not subject.has_reference
    if not report.failures and not is_open and not has_state:
        return True
    if raise_exception:
        raise CheckError(for_an_exception(report) if report.failures or is_open else f"{subject.name}: {_STATE}")
    return False


def _within(args: tuple[Any, ...]) -> Iterator[str]:
    """Yield what holds a tensor that requires a gradient and is neither a list, a tuple, a dict nor a module."""
    for place, value in enumerate(args):
        for leaf in tree_leaves(value):
            if isinstance(leaf, torch.Tensor | torch.nn.Module | type) or callable(leaf):
                continue
            if isinstance(leaf, AbstractSet):
                held: Any = list(leaf)
            else:
                held = dict(leaf) if isinstance(leaf, Mapping) else getattr(leaf, "__dict__", {})
            if any(isinstance(one, torch.Tensor) and one.requires_grad for one in tree_leaves(held)):
                kind = type(leaf).__name__
                yield f"input {place} is a {kind}, in which no tensor is looked for, and one there requires a gradient"


def _measured(subject: Subject, case: Case, profile: Profile, seed: int) -> Measured:
    with preserved_process_state(profile.device, seed):  # it draws, and the caller's numbers are the caller's
        if error := plain_error(subject, (case,)):
            return Measured(raised=error, refused=refused_untrained(subject, (case,)))
        return measure(subject, (case,), profile, seed)


def _is_of_training(law: Law, subject: Subject) -> bool:
    """Whether a law is one of a call in eager mode that a case is enough for; what a surrogate is made of is none."""
    return (
        law.judges("function")
        and law.over == "cases"
        and law.cost == "ms"
        and law.capability is None
        and law.refusable_without is None
        and not (subject.has_reference and law.name == "surrogate")
    )


def _requiring_grad(subject: Subject, case: Case, profile: Profile, seed: int) -> tuple[str, ...]:
    """Return the names of the arguments whose gradient is checked."""
    given = bound(subject.signature, case)
    trained = set(subject.state) - set(subject.fixed)
    if subject.has_reference and trained:
        with preserved_process_state(profile.device, seed):
            trained = read_by_the_reference(subject, case, profile, seed)
    names = tuple(
        name
        for name, value in given.items()
        if name in trained
        or (
            name not in subject.state
            and any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in tree_leaves(value))
        )
    )
    leaves = tree_leaves([given[name] for name in names])
    if names and not any(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor)):
        raise ValueError("no input that requires a gradient has an element: such a call shows nothing")
    if not names:
        raise ValueError("no input requires a gradient: write torch.randn(..., requires_grad=True) for one that does")
    return names


def _apart(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
