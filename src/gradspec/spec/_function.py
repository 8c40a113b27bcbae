"""The spec of a function, as frozen data: nothing in this file computes anything about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gradspec._renamed import renamed
from gradspec.spec._base import (
    Argument,
    Case,
    Difference,
    Make,
    Misuse,
    Reference,
    Spec,
    Waiver,
    check_callable,
    check_common,
    check_names,
)
from gradspec.spec._calls import as_generator, name_of
from gradspec.spec._fields import check_fields
from gradspec.spec._forms import forms
from gradspec.spec._function_parts import (
    REPLAYED,
    Accuracy,
    Effects,
    Formula,
    Noise,
    Placements,
    Saved,
    Supports,
    is_function_class,
)
from gradspec.spec._gradient import declared_gradient, gradient_of
from gradspec.spec._invocation import Invocation, bound, direct

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Accuracy",
    "Argument",
    "Case",
    "Difference",
    "Effects",
    "Formula",
    "FunctionSpec",
    "Invocation",
    "Make",
    "Misuse",
    "Noise",
    "Placements",
    "Reference",
    "Saved",
    "Spec",
    "Supports",
    "Waiver",
]


#: The smallest spec.
_FORM = "FunctionSpec(Cube.apply, cube, cases=[(x, 0.5)]): the function, what forward computes, and calls"


@renamed(documents="documented", behind="autograd_function", attempt="invocation")
@forms(_FORM)
@dataclass(frozen=True, kw_only=True)
class FunctionSpec(Spec):
    """The promise of one custom autograd function. Read aloud, it is the mathematics.

    `gradspec check` takes the path of one: `my_specs.py:SQUARE`.

    Args:
        function (Callable): What is under test, called as users call it, `Cube.apply`.
        primal (Callable): What forward computes, in plain differentiable torch, `lambda x: x**3`.
        name (str, optional): Unique in a report: the name of the function unless given.
        cases (list or Callable): Representative calls, `[(x, 0.5)]`, or what makes them of normal numbers, `lambda
            make: [(make(3), 0.5)]`.
        raises (Callable, optional): A generator of wrong calls and the error that each gets.
        summary (str, optional): One sentence that a user could search for; left out, the first of the docstring of what
            is documented.
        arguments (tuple of Argument, optional): The arguments of the call, for the page.
        documented (tuple of Any, optional): The objects whose docstrings carry the examples that the law `examples`
            runs.
        version (int, default 1): Moves when the promise changes.
        supports (Supports, optional): What is promised beside training, `Supports.eager(vmap=True)`.
        waivers (tuple of Waiver, optional): Laws that are not expected to hold on a case, each with the reason.
        references (tuple of Reference, optional): Where the definitions come from.
        differences (tuple of Difference, optional): How published implementations behave otherwise.
        surrogate (Callable, optional): The map whose true derivative backward applies: the primal, unless told; `lambda
            x: x` of a straight-through one.
        gradient (Callable, optional): In place of a surrogate, for a gradient that is the derivative of no map: what
            backward returns, in plain torch, as `gradient=lambda inputs, output, cotangent: {"w": inputs.gain *
            cotangent}`.
        wrt (tuple of str, optional): The arguments to which a gradient flows, `("x",)`: those that get one from the
            surrogate, unless told.
        zero_gradient (tuple of str, optional): Those of them whose gradient is zero everywhere, on purpose: of them no
            case is asked that shows a slope.
        implementation (type, optional): The `torch.autograd.Function` behind a `function` that is not its `apply`; the
            laws that look inside need it.
        effects (Effects, optional): What a call may do beside returning its value, `Effects(view_of="x")`.
        accuracy (Accuracy, optional): How accurate results are, if more than rounding makes them differ.
        state_after (Callable, optional): The values to which one forward and one backward pass move the arguments in
            `effects.writes`, by name.
        saved (Saved, optional): The most that a call keeps for its backward pass; None says nothing.
        placements (tuple of Placements, optional): How the call works on DTensors; none says nothing.
        noise (Noise | Literal['replayed'], optional): `"replayed"` of a function that draws inside, in forward, from
            torch's generator: each call that a law compares draws the same numbers.
        formula (Formula, optional): Only for elementwise functions; a page says `not checked` without one.

    Raises:
        ValueError: a name in `wrt` or `arguments` that `primal` does not have, a `primal` and a `surrogate`
            of different parameters, a parameter that a call by position cannot fill, or a surrogate beside a gradient.
        TypeError: a field that there is not, or one that is missing.

    Example:
        >>> import torch
        >>> from gradspec import FunctionSpec
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**2
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return 2 * ctx.saved_tensors[0] * grad
        >>> SQUARE = FunctionSpec(Square.apply, lambda x: x**2, cases=lambda make: [make(3)])
        >>> SQUARE.name, SQUARE.wrt
        ('Square', ('x',))
    """

    kind: ClassVar[str] = "function"

    #: Unique in a report: the name of the function unless given.
    name: str = ""
    #: What is under test, called as users call it, `Cube.apply`.
    function: Callable[..., Any] = field(kw_only=False)
    #: What forward computes, in plain differentiable torch, `lambda x: x**3`.
    primal: Callable[..., Any] = field(kw_only=False)
    #: Representative calls, `[(x, 0.5)]`, or what makes them of normal numbers, `lambda make: [(make(3), 0.5)]`. Each
    #: is a tuple of arguments, a `Case` or a single tensor.
    cases: Callable[[Make], Iterator[Case]] | Any  # or a list; what is kept is a generator
    #: The map whose true derivative backward applies: the primal, unless told; `lambda x: x` of a straight-through one.
    surrogate: Callable[..., Any] = None  # type: ignore[assignment]  # filled in below
    #: In place of a surrogate, for a gradient that is the derivative of no map: what backward returns, in plain torch,
    #: as `gradient=lambda inputs, output, cotangent: {"w": inputs.gain * cotangent}`. It gets the arguments of the call
    #: as a named tuple, what `primal` returns, and the cotangent of that; the last two are tuples if there are several
    #: outputs. It returns what backward returns: a gradient for each argument in order, or a dict by name.
    gradient: Callable[..., Any] | None = None
    #: The arguments to which a gradient flows, `("x",)`: those that get one from the surrogate, unless told. Of a list,
    #: `xs` is each of its tensors, `xs[0]` for one.
    wrt: tuple[str, ...] = None  # type: ignore[assignment]  # filled in below
    #: Those of them whose gradient is zero everywhere, on purpose: of them no case is asked that shows a slope.
    zero_gradient: tuple[str, ...] = ()
    #: The `torch.autograd.Function` behind a `function` that is not its `apply`; the laws that look inside need it.
    implementation: type | None = None
    #: What is promised beside training, `Supports.eager(vmap=True)`.
    supports: Supports = Supports()
    #: What a call may do beside returning its value, `Effects(view_of="x")`.
    effects: Effects = Effects()
    #: How accurate results are, if more than rounding makes them differ.
    accuracy: Accuracy = Accuracy()  # noqa: RUF009  # frozen, as those above
    #: The values to which one forward and one backward pass move the arguments in `effects.writes`, by name.
    state_after: Callable[..., Mapping[str, Tensor]] | None = None
    #: The most that a call keeps for its backward pass; None says nothing.
    saved: Saved | None = None
    #: How the call works on DTensors; none says nothing.
    placements: tuple[Placements, ...] = ()
    #: `"replayed"` of a function that draws inside, in forward, from torch's generator: each call that a law compares
    #: draws the same numbers. A primal that draws, as forward does, says so by itself. `Noise` of a function with
    #: noise among its arguments: how that is drawn.
    noise: Noise | Literal["replayed"] | None = None
    #: Only for elementwise functions; a page says `not checked` without one.
    formula: Formula | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(
                f"spec {self.name!r}: function is {self.function!r}, which cannot be called: write {_FORM}"
            )
        if not self.name:
            object.__setattr__(self, "name", name_of(self.function, self.primal))
        check_names(self, "wrt", "zero_gradient")
        check_common(self)
        check_fields(
            self,
            f"spec {self.name!r}",
            supports=Supports,
            effects=Effects,
            accuracy=Accuracy,
            saved=Saved,
            formula=Formula,
            placements=(Placements,),
            implementation=type,
        )
        object.__setattr__(self, "cases", as_generator(self.name, self.cases, Case))
        check_callable(self, "primal")
        _by_position(self.name, "primal", self.primal)
        object.__setattr__(self, "surrogate", self._surrogate())
        check_callable(self, "surrogate")
        if self.wrt is None:
            object.__setattr__(self, "wrt", self._reached())
        if is_function_class(self.function):
            name = getattr(self.function, "__name__", "")
            raise ValueError(f"spec {self.name!r}: function is the class {name}, and what is called is {name}.apply")
        for name in self.zero_gradient:
            if name not in self.wrt:
                raise ValueError(f"spec {self.name!r}: zero_gradient names {name!r}, which is not in wrt")
        names, other = (_by_position(self.name, role, getattr(self, role)) for role in ("primal", "surrogate"))
        placed = (name for placements in self.placements for name in placements.arguments)
        viewed = () if self.effects.view_of is None else (self.effects.view_of,)
        described = (argument.name for argument in self.arguments)
        for name in (*self.wrt, *self.effects.writes, *viewed, *placed, *described):
            if name.partition("[")[0] not in names:
                raise ValueError(f"spec {self.name!r}: {name!r} is not a parameter of primal{_shown(names)}")
        if other != names:
            raise ValueError(
                f"spec {self.name!r}: primal{_shown(names)} and surrogate{_shown(other)} take different arguments"
            )
        if bool(self.effects.writes) != (self.state_after is not None):
            raise ValueError(
                f"spec {self.name!r}: effects.writes is {self.effects.writes!r} and state_after is "
                f"{self.state_after!r}: give both, or neither"
            )

        if self.noise not in (None, REPLAYED):
            _check_noise(self.name, self.noise, names, self.wrt)

    def _surrogate(self) -> Callable[..., Any]:
        """Return what backward is the derivative of, or is declared to return, unless told the primal."""
        if self.gradient is None:
            return self.primal if self.surrogate is None else self.surrogate
        if not callable(self.gradient):
            raise ValueError(f"spec {self.name!r}: gradient is {self.gradient!r}, which cannot be called")
        if self.formula is not None:
            raise ValueError(
                f"spec {self.name!r}: formula is of a surrogate, and gradient replaces it: leave formula out"
            )
        if self.surrogate is not None and gradient_of(self.surrogate) is None:  # a copy of a spec has what was made
            raise ValueError(f"spec {self.name!r}: give surrogate or gradient, not both: either says what backward is")
        return declared_gradient(self.primal, self.gradient)

    def _reached(self) -> tuple[str, ...]:
        """Return the arguments that get a gradient from the surrogate in the cases."""
        from gradspec.spec._depends import depends_on  # with it, torch

        role = "primal" if self.surrogate is self.primal else "surrogate" if self.gradient is None else "gradient"
        try:
            return depends_on(self.surrogate, self.cases, role)
        except ValueError as error:
            raise ValueError(f"spec {self.name!r}: {error}") from None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The argument names of the call, in order, read off `primal`."""
        return tuple(inspect.signature(self.primal).parameters)

    @property
    def autograd_function(self) -> type | None:
        """The `torch.autograd.Function` behind `function`: the class whose `apply` it is, or else `implementation`."""
        owner = getattr(self.function, "__self__", None)
        return owner if is_function_class(owner) else self.implementation

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of `primal` and of whatever else it was made of."""
        made_of = [self.primal, self.function, self.autograd_function, self.surrogate]
        made_of += [self.cases] if self.cases.__module__ else []  # a list is where the spec is
        # `__main__` for what was typed into an interpreter, which is in no module.
        found = (getattr(part, "__module__", None) or "__main__" for part in made_of if part is not None)
        return tuple(dict.fromkeys(found))

    def invocation(self, case: Case) -> Invocation:
        """Return the call of a case."""
        return direct(self.function, case, self.name)

    def named(self, case: Case) -> Mapping[str, Any]:
        """Return the values of a case by the names of the parameters of `primal`."""
        return bound(inspect.signature(self.primal), case.args, case.kwargs)

    def for_(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        implementation: type | None = None,
        noise: Noise | Literal["replayed"] | None = None,
    ) -> FunctionSpec:
        """Hold another implementation to the same promise.

        Args:
            function: a published one, a compiled one, a user's; called as this spec's function is.
            name: its name in the report; that of the function unless given.
            implementation: the `torch.autograd.Function` behind it, where `function` is not its `apply`.
            noise: how the other implementation draws its noise, if it does; inside, as this one, unless told.

        Returns:
            A copy of this spec about `function`, without the examples, the differences, the bound on what is saved and
            the placements, which are ours.
        """
        return replace(
            self,
            name=name,
            function=function,
            implementation=implementation,
            noise=noise or (REPLAYED if self.noise == REPLAYED else None),
            saved=None,
            placements=(),
            documented=(),
            differences=(),
        )


def _by_position(spec: str, role: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments of a primal or surrogate."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # a function in C, such as torch.exp
        raise ValueError(
            f"spec {spec!r}: Python cannot read the arguments of {role}: write a function, or lambda x: ..."
        ) from None
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise ValueError(
                f"spec {spec!r}: the laws give each argument of {role} by its name, and {name!r} takes any: "
                f"write {role} without **"
            )
    return tuple(parameters)


def _check_noise(spec: str, noise: object, names: tuple[str, ...], wrt: tuple[str, ...]) -> None:
    if not isinstance(noise, Noise):
        raise ValueError(
            f'spec {spec!r}: noise is {noise!r}, expected "replayed" of a function that draws inside, or a Noise of '
            "one that takes its noise as arguments"
        )
    for name in noise.names:
        if name not in names or name in wrt:
            raise ValueError(
                f"spec {spec!r}: the noise {name!r} is not a parameter of primal{_shown(names)} without a gradient"
            )
    expected = set() if noise.evaluation is None else set(noise.names)
    if set(noise.at_rest) != expected:
        raise ValueError(
            f"spec {spec!r}: evaluation is {noise.evaluation!r} and at_rest is {dict(noise.at_rest)!r}: give both, "
            f"for the noise {_shown(noise.names)}, or neither"
        )


def _shown(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})"


def with_function(spec: FunctionSpec, function: Callable[..., Any]) -> FunctionSpec:
    """Return the same promise of another function, all of it; that of an operator becomes one of a function."""
    said = {one.name: getattr(spec, one.name) for one in fields(FunctionSpec)}
    return FunctionSpec(**said | {"function": function})
