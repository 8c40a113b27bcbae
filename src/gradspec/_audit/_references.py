"""References that the user gives: functions for the right value and for the right gradient."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from gradspec._audit._apart import apart
from gradspec._audit._measured import Measured
from gradspec._audit._module_call import beside_state, in_double
from gradspec._audit._own_dtype import plain_error
from gradspec._audit._probe import measure
from gradspec._audit._roles import taken_by
from gradspec._audit._subject import Subject
from gradspec._one_line import in_short
from gradspec.law import Finding
from gradspec.profile import Profile
from gradspec.spec import Case
from gradspec.spec._function_parts import is_function_class
from gradspec.spec._gradient import as_declared, declared_gradient


def with_references(
    subject: Subject,
    cases: Sequence[Case],
    *,
    primal: Any,
    surrogate: Any,
    gradient: Any = None,
    roles: tuple[str, str] = ("primal", "surrogate"),
) -> Subject:
    """Return what is judged with what it should compute, and with what its gradient should be.

    Args:
        subject: what is judged.
        cases: the calls, those of a module with its state.
        primal: what forward should compute; None says nothing.
        surrogate: the map whose derivative backward should apply; None says that of `primal`.
        gradient: what backward should return, as the field of a spec; None says nothing.
        roles: what the caller calls the two.

    Raises:
        TypeError: one cannot be called.
        ValueError: one does not take the arguments of a call, or there is both a surrogate and a gradient.
    """
    if gradient is not None:
        if surrogate is not None:
            raise ValueError("give surrogate or gradient, not both: either says what backward is")
        surrogate = _with_backward(subject, primal, gradient)
    given = (primal, surrogate)
    named = [None if one is None else _named(role, one, subject, cases) for role, one in zip(roles, given, strict=True)]
    if named != [None, None] and subject.state:
        subject = replace(subject, call=_trained(subject.call, frozenset(subject.state) - subject.fixed))
    return replace(subject, primal=named[0], surrogate=named[1])


def _trained(call: Callable[..., Any], parameters: frozenset[str]) -> Callable[..., Any]:
    """Return the call of a module whose parameters require a gradient where an input does, as in training."""
    # A second call with the same tensors, as of a checkpoint, has the same leaves.
    known = WeakIdKeyDictionary()

    def called(*args: Any, **kwargs: Any) -> Any:
        is_plain = not torch.compiler.is_compiling() and torch._C._functorch.maybe_current_level() is None
        if is_plain and any(isinstance(t, torch.Tensor) and t.requires_grad for t in tree_leaves((args, kwargs))):
            for name in parameters & kwargs.keys():
                if not (value := kwargs[name]).requires_grad:
                    if value not in known:
                        known[value] = value.detach().requires_grad_()
                    kwargs[name] = known[value]
        return call(*args, **kwargs)

    return called


def _with_backward(subject: Subject, primal: Any, gradient: Any) -> Callable[..., Any]:
    """Return what forward computes with the gradient that is given behind it.

    Raises:
        TypeError: it cannot be called.
        ValueError: of a module, whose parameters a call does not give, nobody says what forward computes.
    """
    if not callable(gradient):
        raise TypeError(f"gradient cannot be called: it is {in_short(gradient)}")
    if primal is None and subject.state:
        raise ValueError("the gradient of a module's inputs needs what its forward computes, in plain torch: give both")
    call: Any = subject.call if primal is None else getattr(primal, "apply", primal)
    own = [one for name, one in subject.signature.parameters.items() if name not in subject.state]

    def value(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    value.__signature__ = subject.signature.replace(parameters=own)  # type: ignore[attr-defined]  # of what has none too
    return declared_gradient(value, gradient)


#: What a fault of a spec says before the error itself: an audit has none.
_OF_A_SPEC = re.compile(r"^SpecFaultError: the \w+ of the spec raised ")


def measured_with(
    subject: Subject,
    measured: Measured,
    cases: Sequence[Case],
    profile: Profile,
    seed: int,
    *,
    roles: tuple[str, str],
) -> Measured:
    """Return what was measured of a function, with the gradients that its references say it has.

    Raises:
        ValueError: a reference raises on a case.
    """
    seen = Measured()
    for role, call in zip(roles, (subject.primal, subject.surrogate), strict=True):
        if call is not None:
            seen = apart(lambda call=call: _seen(subject, call, cases, profile, seed), profile, seed)  # type: ignore[misc,assignment]  # of this round
            if isinstance(seen, Finding) or seen.raised:
                why = seen.message if isinstance(seen, Finding) else seen.raised
                raise ValueError(f"the {role} raises {_OF_A_SPEC.sub('', why)}")
    marked = {subject.parameter_of(leaf) for leaves in subject.marked.values() for leaf in leaves} - set(subject.state)
    # Where the call says what is trained, nothing else has to get a gradient.
    expected = [name for name in seen.wrt if not marked or name in marked]
    trained = _trained_in(subject, seen)
    either = ({*measured.wrt, *expected} - set(subject.state) | trained) - subject.zero
    unread = subject.state.keys() - trained
    wrt = tuple(name for name in subject.signature.parameters if name in either)
    # What they answer is no longer a question.
    return replace(
        measured,
        wrt=wrt,
        zero=tuple(name for name in wrt if name in seen.zero or name not in seen.wrt),
        fixed=(),
        ignored=(),
        hidden=(),
        stopped={},
        lost=tuple(one for one in measured.lost if one.is_wrong and subject.parameter_of(one.name) in unread),
    )


def read_by_the_reference(subject: Subject, case: Case, profile: Profile, seed: int) -> set[str]:
    """Return the parameters of a module to which a gradient flows in what backward should apply."""
    declared = subject.surrogate or subject.primal
    if declared is None or not subject.state:
        return set()
    return _trained_in(subject, _seen(subject, declared, (case,), profile, seed))


def _trained_in(subject: Subject, seen: Measured) -> set[str]:
    """Return them: a reference with weights of its own says nothing of the module's, one that reads these does."""
    return {name for name in seen.wrt if name in subject.state and name not in subject.fixed}


def zero_in_the_reference(
    subject: Subject, case: Case, names: Sequence[str], profile: Profile, seed: int
) -> tuple[str, ...]:
    """Return those of some arguments whose gradient is zero everywhere in what backward should apply, too."""
    declared = subject.surrogate or subject.primal
    seen = Measured() if declared is None else _seen(subject, declared, (case,), profile, seed)
    return tuple(name for name in names if name in seen.zero)


def _seen(subject: Subject, call: Callable[..., Any], cases: Sequence[Case], profile: Profile, seed: int) -> Measured:
    """Return what plain calls of a reference show."""
    alone = replace(subject, call=call, implementation=None, operator=None, primal=None, surrogate=None)
    if error := plain_error(alone, cases):
        return Measured(raised=error)
    return measure(alone, cases, profile, seed)


def _named(role: str, reference: Any, subject: Subject, cases: Sequence[Case]) -> Callable[..., Any]:
    """Return a reference that takes the arguments of the function by name, and gives them by position.

    Raises:
        TypeError: it cannot be called.
        ValueError: it is the function itself, or does not take the arguments of a call.
    """
    call: Any = getattr(reference, "apply", None) if is_function_class(reference) else reference
    if not callable(call):
        raise TypeError(f"{role} cannot be called: it is {in_short(reference)}")
    if call == subject.call:
        raise ValueError(f"{role} is the function itself: give one in plain torch")

    parameters = subject.signature.parameters
    asked = [one for name, one in parameters.items() if name not in subject.state]
    unknown = {one.name for one in asked} - taken_by(
        call, subject.signature.replace(parameters=asked)
    ).parameters.keys()

    beside = beside_state(subject, call) if subject.state else None
    plain = in_double(call) if isinstance(call, torch.nn.Module) else call

    def own(args: tuple[Any, ...], kwargs: Any) -> inspect.BoundArguments:
        """Return the arguments of a call, without the defaults that the reference has no argument for."""
        bound = subject.signature.bind(*args, **kwargs)
        bound.arguments = {
            name: value
            for name, value in bound.arguments.items()
            if name not in subject.state and not (name in unknown and _is(value, parameters[name].default))
        }
        return bound

    def called(*args: Any, **kwargs: Any) -> Any:
        bound = own(args, kwargs)
        if beside is None:
            return plain(*bound.args, **bound.kwargs)
        return beside({name: kwargs[name] for name in subject.state}, *bound.args, **bound.kwargs)

    for case in cases:
        bound = own(case.args, case.kwargs)
        try:
            inspect.signature(call).bind(*bound.args, **bound.kwargs)
        except TypeError as error:
            raise ValueError(f"{role} does not take the inputs of the function: {error}") from None
        except ValueError:  # a function in C, such as torch.round, has no signature to read
            break
    called.__signature__ = subject.signature  # type: ignore[attr-defined]  # what `inspect.signature` reads
    called.__qualname__ = getattr(reference, "__qualname__", type(reference).__qualname__)
    called.__module__ = getattr(reference, "__module__", None) or "__main__"
    return as_declared(called, call)


def _is(value: Any, default: Any) -> bool:
    """Whether an argument has its default: a number, a text, a flag or None."""
    return type(value) is type(default) and isinstance(value, bool | int | float | str | None) and value == default
