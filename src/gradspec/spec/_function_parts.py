"""Optional parts of a function's spec, beside its values and gradients, as frozen data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from gradspec.spec._fields import check_fields, check_promises
from gradspec.spec._forms import forms

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@forms("Supports(vmap=True)")
@dataclass(frozen=True, kw_only=True)
class Supports:
    """What is promised: True, that it works; False, that it is refused with an error, which is tested too.

    None promises neither: it may work, or raise, or be what this torch does to any function of this form. A run asks
    about what is not None; of the rest it fails by a silently wrong result under `torch.compile` alone. What a spec
    does not speak of is None, but for `torch.autocast`, which is a part of training.

    Args:
        forward_mode (bool, optional): Forward-mode differentiation: `torch.func.jvp` and dual tensors.
        double_backward (bool, optional): Differentiating the backward pass.
        func_grad (bool, optional): `torch.func.grad` and what is built on it.
        vmap (bool, optional): `torch.vmap`.
        compile (bool, optional): `torch.compile(fullgraph=True)`, forward and backward.
        compile_grad (bool, optional): `torch.compile` of a function that calls `torch.func.grad`.
        compile_vmap (bool, optional): `torch.compile` of a function that calls `torch.vmap`.
        compile_jvp (bool, optional): `torch.compile` of a function that calls `torch.func.jvp`.
        dynamic_shapes (bool, optional): `torch.compile(dynamic=True)`: one compilation for all batch sizes.
        compiled_autograd (bool, optional): `torch._dynamo.config.compiled_autograd`: the backward pass compiled when it
            runs.
        export (bool, optional): `torch.export.export(...).module()`, then backward.
        fake (bool, optional): Fake tensors, which have no values: what compilers and memory estimators trace with.
        autocast (bool, default True): `torch.autocast` around the call.

    Example:
        >>> from gradspec import Supports
        >>> Supports(vmap=True, export=False).compile is None
        True
    """

    #: Forward-mode differentiation: `torch.func.jvp` and dual tensors.
    forward_mode: bool | None = None
    #: Differentiating the backward pass.
    double_backward: bool | None = None
    #: `torch.func.grad` and what is built on it.
    func_grad: bool | None = None
    #: `torch.vmap`.
    vmap: bool | None = None
    #: `torch.compile(fullgraph=True)`, forward and backward.
    compile: bool | None = None
    #: `torch.compile` of a function that calls `torch.func.grad`.
    compile_grad: bool | None = None
    #: `torch.compile` of a function that calls `torch.vmap`.
    compile_vmap: bool | None = None
    #: `torch.compile` of a function that calls `torch.func.jvp`.
    compile_jvp: bool | None = None
    #: `torch.compile(dynamic=True)`: one compilation for all batch sizes.
    dynamic_shapes: bool | None = None
    #: `torch._dynamo.config.compiled_autograd`: the backward pass compiled when it runs.
    compiled_autograd: bool | None = None
    #: `torch.export.export(...).module()`, then backward.
    export: bool | None = None
    #: Fake tensors, which have no values: what compilers and memory estimators trace with.
    fake: bool | None = None
    #: `torch.autocast` around the call.
    autocast: bool | None = True

    def __post_init__(self) -> None:
        check_promises(self)

    @classmethod
    def all(cls, **promised: bool | None) -> Supports:
        """Return the promise of everything, but for what is given.

        Example:
            >>> from gradspec import Supports
            >>> Supports.all(export=None).vmap
            True
        """
        return cls(**{**dict.fromkeys((field.name for field in fields(cls)), True), **promised})

    @classmethod
    def eager(cls, **promised: bool | None) -> Supports:
        """Return the promise of eager training only: first derivatives, and None for all else but what is given.

        Example:
            >>> from gradspec import Supports
            >>> Supports.eager(compile=True).vmap is None
            True
        """
        return cls(**{**dict.fromkeys((field.name for field in fields(cls)), None), **promised})


@forms("Effects(view_of='x')")
@dataclass(frozen=True, kw_only=True)
class Effects:
    """The permitted side effects of a call. What is not declared here must not happen.

    Args:
        view_of (str, optional): The output may be a tracked view of this argument; None: the output is fresh memory.
        writes (tuple of str, optional): The arguments that move, once for each forward pass, at the end of the first
            backward pass through it.

    Example:
        >>> from gradspec.spec import Effects
        >>> Effects(view_of="x").writes
        ()
    """

    #: The output may be a tracked view of this argument; None: the output is fresh memory.
    view_of: str | None = None
    #: The arguments that move, once for each forward pass, at the end of the first backward pass through it. Forward
    #: writes to none: a spec hands a buffer that it moves on as a copy, and has it returned.
    writes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, "Effects", view_of=str, writes=(str,))


@forms("Accuracy(rtol=1e-8)")
@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How accurate results are, of a function that is not as accurate as its dtype allows, or more than it must be.

    What is not said: an operation may round its result to the dtype of the call, half types are summed in float32, and
    in float64 nothing but rounding is left.

    Args:
        rtol (float, optional): How far a result may be off, of its largest element: the tolerance of a solver.
        standard_error (float, optional): The standard error of a result, of its largest element: that of a Monte Carlo
            estimate.
        accumulate (torch.dtype, optional): The dtype in which sums are added up; None: float32 of half types, else that
            of the call.
        store (torch.dtype, optional): The dtype in which results between the operations are kept; None: that of the
            call.

    Raises:
        ValueError: a tolerance that is not from 0 to 1, an error that is negative or not finite, or a dtype that is
            none of floating point.

    Example:
        >>> from gradspec.spec import Accuracy
        >>> Accuracy(rtol=1e-10).rtol
        1e-10
    """

    #: How far a result may be off, of its largest element: the tolerance of a solver.
    rtol: float = 0.0
    #: The standard error of a result, of its largest element: that of a Monte Carlo estimate.
    standard_error: float = 0.0
    #: The dtype in which sums are added up; None: float32 of half types, else that of the call.
    accumulate: torch.dtype | None = None
    #: The dtype in which results between the operations are kept; None: that of the call.
    store: torch.dtype | None = None

    def __post_init__(self) -> None:
        for name, most, range_ in (("rtol", 1.0, "from 0 to 1"), ("standard_error", math.inf, "from 0 on")):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < most:
                raise ValueError(f"Accuracy: {name} is {value!r}, expected a number {range_}, such as 1e-10")
        for name in ("accumulate", "store"):
            value = getattr(self, name)
            if value is not None and not getattr(value, "is_floating_point", False):
                raise ValueError(f"Accuracy: {name} is {value!r}, expected a floating-point dtype, torch.float32")


@forms("Saved(text='a mask', bytes=lambda x: x.numel())")
@dataclass(frozen=True, kw_only=True)
class Saved:
    """The most that a call keeps for its backward pass beside its arguments and outputs, which the caller has.

    Example:
        >>> from gradspec.spec import Saved
        >>> Saved(text="a mask of the shape of `x`", bytes=lambda x, p: x.numel()).text
        'a mask of the shape of `x`'
    """

    #: In words, for the page: "a mask of the shape of `x`".
    text: str
    #: The number of bytes, of the arguments of the call; 0 for none.
    bytes: Callable[..., int]


@forms("Placements(arguments={'x': 'shard(0)'}, output='shard(0)')")
@dataclass(frozen=True, kw_only=True)
class Placements:
    """One way in which the call works on DTensors of a mesh of one dimension.

    Raises:
        ValueError: a placement is none of these words, or an argument is "partial".

    Example:
        >>> from gradspec.spec import Placements
        >>> Placements(arguments={"x": "shard(0)", "weight": "replicate"}, output="shard(0)").output
        'shard(0)'
    """

    #: How each argument is placed, by name: "shard(0)", some of its rows on each rank, or "replicate", all of it. What
    #: is not named, or is not a tensor in a case, is the same on each rank.
    arguments: Mapping[str, str]
    #: How each output is then placed: as an argument, "partial" if the sum over the ranks is still to be made, "plain"
    #: if it is not a DTensor and each rank has all of it, or "any" of these.
    output: str
    #: The form that takes DTensors, called with the arguments of `primal` by position; None if `function` takes them.
    call: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        words = '"shard(0)" or "replicate"'
        for name, placement in self.arguments.items():
            if not re.fullmatch(r"shard\(\d+\)|replicate", placement):
                raise ValueError(f"the placement of {name} is {placement!r}, expected {words}")
        if not re.fullmatch(r"shard\(\d+\)|replicate|partial|plain|any", self.output):
            raise ValueError(
                f'the placement of the output is {self.output!r}, expected {words} or "partial", "plain" or "any"'
            )


#: What `FunctionSpec.noise` says of a function that draws inside.
REPLAYED: Literal["replayed"] = "replayed"


@forms('noise="replayed" of a function that draws inside; a Noise has names, drawing, law, cdf, probe and recover')
@dataclass(frozen=True, kw_only=True)
class Noise:
    """How noise is drawn that the function under test takes as arguments.

    A spec is then about the function with its noise given, which is deterministic; a few laws hold the form that draws.
    Of a function that draws inside, write `noise="replayed"`.
    """

    #: The arguments that are noise; the forms below take the other ones, in order.
    names: tuple[str, ...]
    #: The form that draws, once in the forward pass, from torch's own generator of the device of its arguments.
    drawing: Callable[..., Any]
    #: What each of them is distributed as, in words: "uniform on [0, 1), one number a sample, independent".
    law: str
    #: The cumulative distribution function of that law, elementwise; it may jump, as that of a Bernoulli mask.
    cdf: Callable[[Tensor], Tensor]
    #: `probe(n, *args)`: the arguments of a call, like `args`, whose value and gradients show the noise of n samples.
    probe: Callable[..., tuple[Any, ...]]
    #: `recover(y, gradients)`: the noise by name, a row a sample; the gradients are those of `sum(y)`, by name.
    recover: Callable[[Tensor, Mapping[str, Tensor]], Mapping[str, Tensor]]
    #: The form of evaluation, which draws nothing; None if there is none.
    evaluation: Callable[..., Any] | None = None
    #: The values that the noise has in evaluation, by name.
    at_rest: Mapping[str, Any] = field(default_factory=dict)


@forms("Formula(primal='x', surrogate='f * x')")
@dataclass(frozen=True, kw_only=True)
class Formula:
    """The mathematics of an elementwise function, as sympy source over its argument names."""

    #: What forward computes, `"x"`.
    primal: str
    #: The map whose derivative backward applies, `"f * x"`.
    surrogate: str


def is_function_class(value: Any) -> TypeGuard[type]:
    """Whether a value is a class made from `torch.autograd.Function`, without an import of torch."""
    bases = value.__mro__ if isinstance(value, type) else ()
    return any((base.__module__, base.__name__) == ("torch.autograd.function", "Function") for base in bases)
