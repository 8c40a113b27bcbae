"""The spec of a `torch.library` operator: a function whose schema declares its arguments and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from gradspec.spec._forms import forms
from gradspec.spec._function import FunctionSpec, Supports, with_function
from gradspec.spec._schema import functional, home_of, named, overload_of, signature_of, written

if TYPE_CHECKING:
    # What the annotations of FunctionSpec name, for who reads those of the constructor here.
    from collections.abc import Iterator, Mapping  # noqa: F401
    from typing import Literal  # noqa: F401

    from torch import Tensor  # noqa: F401

    from gradspec.spec._base import Argument, Case, Difference, Make, Misuse, Reference, Waiver  # noqa: F401
    from gradspec.spec._function import Accuracy, Effects, Formula, Noise, Placements, Saved  # noqa: F401

#: What torch does to any operator of `torch.library`: it gives zero tangents silently, and raises under `torch.func`,
#: and under `torch.vmap` unless a rule is registered. What a registered gradient calls has often no gradient itself.
_LIMITS = ("double_backward", "forward_mode", "func_grad", "vmap", "compile_grad", "compile_vmap", "compile_jvp")
#: What an operator promises unless told: all else.
SUPPORTED = Supports.all(**dict.fromkeys(_LIMITS))


@forms('OperatorSpec("mylib::scale", primal=scale, cases=[(x, 0.5)])')
@dataclass(frozen=True, kw_only=True)
class OperatorSpec(FunctionSpec):
    """The promise of one operator that `torch.library` registers, in Python or in C++.

    The laws call it as a function without effects: they hand it copies of the arguments that its schema says it writes,
    and these copies are outputs too, behind the others, in the order of the schema. `primal` and `surrogate` are plain
    functions of that form, with the parameters of the schema. What the operator does to memory is for the law `schema`.

    Raises:
        ValueError: there is no such operator, it has several overloads and none is named, `primal` has other
            parameters than the schema, or a field is wrong as in a `FunctionSpec`.

    Example:
        >>> import torch
        >>> from gradspec import Case, OperatorSpec, verify
        >>> @torch.library.custom_op("readme::triple", mutates_args=())
        ... def triple(x: torch.Tensor) -> torch.Tensor:
        ...     return 3 * x
        >>> _ = triple.register_fake(torch.empty_like)
        >>> triple.register_autograd(lambda ctx, grad: 2 * grad)
        >>> def cases(make):
        ...     yield Case(name="a matrix", args=(make(4, 3),))
        >>> TRIPLE = OperatorSpec(
        ...     name="triple", operator="readme::triple", primal=lambda x: 3 * x, wrt=("x",), cases=cases
        ... )
        >>> print(verify([TRIPLE]).failures[0].finding.likely)
        every element is off by the factor 0.667
    """

    kind: ClassVar[str] = "operator"

    #: What is under test: "mylib::scale", `torch.ops.mylib.scale`, one of its overloads, or what `custom_op` returns.
    operator: Any = field(kw_only=False)
    #: What forward computes, in plain differentiable torch, with the parameters of the schema.
    primal: Callable[..., Any] = field(kw_only=True)
    #: The operator as a function without effects; made of `operator`.
    function: Callable[..., Any] = field(init=False, repr=False, compare=False)
    #: The types of device for which it is promised to have a kernel.
    devices: tuple[str, ...] = ("cpu",)
    supports: Supports = SUPPORTED

    def __post_init__(self) -> None:
        try:
            overload = overload_of(self.operator)
        except ValueError as error:
            raise ValueError(f"spec {self.name!r}: {error}") from None
        object.__setattr__(self, "function", functional(overload))
        object.__setattr__(self, "name", self.name or named(overload).rpartition("::")[2])
        super().__post_init__()
        names = tuple(signature_of(overload._schema).parameters)
        if names != self.parameters:
            raise ValueError(
                f"spec {self.name!r}: primal({', '.join(self.parameters)}) and the schema {overload._schema} have "
                f"different arguments"
            )

    @staticmethod
    def called(operator: Any) -> Callable[..., Any]:
        """Return an operator as the laws call it: on copies of what it writes, which it returns behind its outputs.

        Args:
            operator: as the field of that name.

        Returns:
            A function with the parameters of the schema.

        Raises:
            ValueError: there is no such operator, or it has several overloads and none is named.
        """
        overload = overload_of(operator)
        function = functional(overload)

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__signature__ = signature_of(overload._schema)  # type: ignore[attr-defined]  # for `inspect.signature`
        return call

    @cached_property
    def overload(self) -> Any:
        """The overload that is called."""
        return overload_of(self.operator)

    @property
    def writes(self) -> tuple[str, ...]:
        """The arguments that the schema says it writes."""
        return written(self.overload._schema)

    @property
    def modules(self) -> tuple[str, ...]:
        """The module in which the operator is defined, as far as Python knows it, and that of `primal`."""
        return tuple(dict.fromkeys(name for name in (home_of(self.overload), *super().modules) if name))

    def for_(self, function: Callable[..., Any], **how: Any) -> FunctionSpec:
        """Hold a function to the promise of the operator; see `FunctionSpec.for_`."""
        return with_function(self, self.function).for_(function, **how)
