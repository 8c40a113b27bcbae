r"""The reference by construction: a plain function with the value of the primal and every derivative of the surrogate.

.. math::

    r(x) = \operatorname{stop}(p(x)) + s(x) - \operatorname{stop}(s(x))

It is ordinary differentiable torch, legal under every transform, so that nearly every law reads
"the transformed function equals the transformed reference".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from gradspec.law import shown
from gradspec.laws.tensor.support._call import SpecFaultError, outputs
from gradspec.spec import FunctionSpec


def reference(spec: FunctionSpec) -> Callable[..., Any]:
    """Return the reference of a spec; it takes the arguments of the call."""

    def call(*args: Any) -> Any:
        primal = on_spec_side("primal", spec.primal, *(stop(arg) for arg in args))
        surrogate = on_spec_side("surrogate", spec.surrogate, *args)
        if isinstance(primal, tuple):
            return tuple(_join(p, s) for p, s in zip(primal, surrogate, strict=True))
        return _join(primal, surrogate)

    return call


def on_spec_side(role: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of the spec; what it raises is a fault of the spec.

    Raises:
        SpecFaultError: the call raised, or returned what is no tensor.
        Exception: what the function under test itself raised, where it stands in for the spec (see `stand_in`).
    """
    try:
        y = function(*args, **kwargs)
    except Exception as error:
        if is_stand_in(function):
            raise
        raise SpecFaultError(f"the {role} of the spec raised {shown(error)}") from error
    if role not in ("primal", "surrogate") or is_stand_in(function):
        return y
    for place, value in enumerate(outputs(y)):
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise SpecFaultError(f"output {place} of the {role} is a {kind}: the laws judge outputs that are tensors")
    return y


def stand_in(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a callable that calls the function under test where a spec would say what that function promises."""
    function.__dict__["gradspec_stand_in"] = True
    return function


def is_stand_in(function: Callable[..., Any]) -> bool:
    """Return whether the primal or surrogate of a spec is the function under test itself, as in an audit."""
    return "gradspec_stand_in" in getattr(function, "__dict__", {})


def stop(value: Any) -> Any:
    """Return a tensor without its graph; anything else as it is."""
    return value.detach() if isinstance(value, Tensor) else value


def _join(primal: Tensor, surrogate: Tensor) -> Tensor:
    if not (primal.is_floating_point() or primal.is_complex()):
        return primal
    return primal.detach() + (surrogate - surrogate.detach())
