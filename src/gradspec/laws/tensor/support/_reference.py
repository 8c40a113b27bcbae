r"""The reference by construction: a plain function with the value of the primal and every derivative of the surrogate.

.. math::

    r(x) = \operatorname{stop}(p(x)) + s(x) - \operatorname{stop}(s(x))

It is ordinary differentiable torch, legal under every transform, so that nearly every law reads
"the transformed function equals the transformed reference".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor

from gradspec.law import shown
from gradspec.laws.tensor.support._call import Inputs, SpecFaultError, StandInError, differentiable, outputs
from gradspec.laws.tensor.support._dense import with_all_numbers
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import is_half
from gradspec.laws.tensor.support._graph import classes_behind
from gradspec.spec import FunctionSpec
from gradspec.spec._fault import spec_faults


def reference(spec: FunctionSpec) -> Callable[..., Any]:
    """Return the reference of a spec; it takes the arguments of the call."""

    def call(*args: Any) -> Any:
        surrogate = on_spec_side("surrogate", spec.surrogate, *args)
        # Where they are one, it is called once: in an audit it may write to its state.
        is_one = spec.primal is spec.surrogate or (is_stand_in(spec.primal) and is_stand_in(spec.surrogate))
        if is_one:
            return tuple(map(_fresh, surrogate)) if isinstance(surrogate, tuple | list) else _fresh(surrogate)
        primal = on_spec_side("primal", spec.primal, *(stop(arg) for arg in args))
        if not isinstance(primal, tuple | list):
            return _join(primal, surrogate)
        several = outputs(surrogate)
        if len(several) != len(primal):
            raise SpecFaultError(f"the primal of the spec has {len(primal)} outputs, the surrogate {len(several)}")
        return tuple(_join(p, s) for p, s in zip(primal, several, strict=True))

    return call


def plain_call(spec: FunctionSpec, inputs: Inputs) -> Callable[..., Any]:
    """Return what a call in another way is compared with: the reference, in a half type the plain call of the function.

    A reference rounds there as it likes, and the law `vjp` holds the plain call to what is right in float64.
    """
    return spec.function if is_half(inputs) else reference(spec)


def plain_value(spec: FunctionSpec, inputs: Inputs) -> Callable[..., Any]:
    """Return what the value of a call in another way is compared with, as `plain_call` does of gradients."""
    return spec.function if is_half(inputs) else partial(on_spec_side, "primal", spec.primal)


def on_spec_side(role: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of the spec; what it raises is a fault of the spec.

    Raises:
        SpecFaultError: the call raised, or returned what is not a tensor.
        StandInError: the call raised, and the function under test replaces the spec (see `stand_in`).
    """
    if is_stand_in(function):
        try:
            return function(*args, **kwargs)
        except StandInError:
            raise  # a call within a call says it once
        except Exception as error:
            raise _not_there(error) from error
    with spec_faults(role, shown):
        y = function(*args, **kwargs)
    if role not in ("primal", "surrogate"):
        return y
    for place, value in enumerate(outputs(y)):
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise SpecFaultError(f"output {place} of the {role} is a {kind}: the laws judge outputs that are tensors")
    return y


def stand_in(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a callable that calls the function under test where a spec would say what that function promises.

    A spec that `gradspec init` writes has it in place of a primal or surrogate that its author has still to write. The
    laws that need it are not measured then; all others compare with what the function does in eager mode.

    Args:
        function: takes the arguments of the call, and returns what the function under test returns.

    Returns:
        The same callable.

    Example:
        >>> import torch
        >>> from gradspec import FunctionSpec, Supports, read_case, stand_in
        >>> spec = FunctionSpec(
        ...     name="sine",
        ...     function=torch.sin,
        ...     primal=stand_in(lambda x: torch.sin(x)),
        ...     surrogate=stand_in(lambda x: torch.sin(x)),
        ...     wrt=("x",),
        ...     cases=lambda make: iter([read_case("(randn(2, 3),)")]),
        ...     supports=Supports.eager(),
        ... )
    """
    function.__dict__["gradspec_stand_in"] = True
    return function


def is_stand_in(function: Callable[..., Any]) -> bool:
    """Return whether the primal or surrogate of a spec is the function under test itself, as in an audit."""
    return "gradspec_stand_in" in getattr(function, "__dict__", {})


def module_state(spec: FunctionSpec) -> frozenset[str]:
    """Return the arguments that are parameters and buffers of a module, in the audit of one: no caller gives them."""
    return frozenset(getattr(spec.primal, "__dict__", {}).get("gradspec_state", ()))


def is_audited(spec: FunctionSpec) -> bool:
    """Return whether a spec is that of an audit, which promises nothing that nobody has said."""
    return is_stand_in(spec.primal) or "gradspec_audited" in getattr(spec.primal, "__dict__", {})


def declared_zero(spec: FunctionSpec) -> frozenset[str]:
    """Return the arguments that get no gradient: on purpose, as an audit or a proposal is told, or as it sees."""
    proposed = spec.zero_gradient if is_stand_in(spec.primal) else ()
    return frozenset(getattr(spec.primal, "__dict__", {}).get("gradspec_zero", proposed))


def moving_state(spec: FunctionSpec) -> frozenset[str]:
    """Return those of them that forward may write to: what a module in training keeps without a gradient."""
    return frozenset(getattr(spec.primal, "__dict__", {}).get("gradspec_moving", ()))


def is_of_module(spec: FunctionSpec) -> bool:
    """Return whether a spec is that of an audit of a module: what it has registered is an argument."""
    return bool(getattr(spec.primal, "__dict__", {}).get("gradspec_module"))


def marked(spec: FunctionSpec, case: str) -> frozenset[str]:
    """Return the arguments that a call under audit marks as trained: parameters, and what requires a gradient."""
    found: Mapping[str, frozenset[str]] = getattr(spec.primal, "__dict__", {}).get("gradspec_marked", {})
    return found.get(case, frozenset())


@contextmanager
def as_reference(spec: FunctionSpec) -> Iterator[None]:
    """Count what raises here, a backward pass too, as an error of the reference and not of the function under test.

    Raises:
        StandInError: something raised, and the function under test replaces the spec.
    """
    try:
        yield
    except SpecFaultError:
        raise
    except Exception as error:
        if is_stand_in(spec.surrogate):
            raise _not_there(error) from error
        raise


def _not_there(error: Exception) -> StandInError:
    return StandInError(f"what it is compared with, the function in eager mode, raises {shown(error)}")


def is_asked(spec: FunctionSpec, capability: str) -> bool:
    """Return whether a law asks for a capability in passing: a spec that promises it, and an audit, which asks all."""
    return is_stand_in(spec.primal) or bool(getattr(spec.supports, capability))


def stop(value: Any) -> Any:
    """Return a tensor without its graph; anything else as it is."""
    return value.detach() if isinstance(value, Tensor) else value


def _fresh(value: Any) -> Any:
    """Return a tensor in memory of its own, rounded once more, as `_join` does: an infinity stays one here."""
    return with_all_numbers(value) + 0 if isinstance(value, Tensor) and differentiable(value) else value


def _join(primal: Tensor, surrogate: Tensor) -> Tensor:
    if not differentiable(primal):
        return primal
    primal, surrogate = with_all_numbers(primal), with_all_numbers(surrogate)
    return primal.detach() + (surrogate - surrogate.detach())


def own_backwards(call: Callable[..., Any], inputs: Inputs) -> str:
    """Say which Functions a surrogate calls: what is held to differences there is their backward; empty for none."""
    classes = quietly(lambda: classes_behind(call(*inputs.args(inputs.leaves())))) or ()
    names = [f"`{one.__name__}`" for one in classes]
    return f"the surrogate calls {' and '.join(names)}: that backward is held to differences here" if names else ""
