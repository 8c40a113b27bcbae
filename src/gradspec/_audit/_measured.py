"""The measurements of plain calls of a function, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradspec._audit._graphless import Graphless
from gradspec._audit._lost import Lost
from gradspec.law import Finding


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements of plain calls. Arguments are named as in the call, `xs_0` for the first of a list `xs`."""

    #: The arguments, as in the signature, to which a gradient flows.
    wrt: tuple[str, ...] = ()
    #: Of those that hold several tensors, if a call marks some and no gradient flows to the rest: `xs[0]`, ...
    partly: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The argument that the output is a view of.
    view_of: str | None = None
    #: The dtype of the first floating-point output that has another one than the arguments, and theirs.
    other_dtype: tuple[str, str] | None = None
    #: Whether two calls with the same arguments differ, and agree where the generators are seeded alike.
    noisy_forward: bool = False
    #: Whether two backward passes through one graph differ, and agree where the generators are seeded alike.
    noisy_backward: bool = False
    #: Whether two calls differ though the generators are seeded alike: a buffer, a counter.
    stateful: bool = False
    #: Whether the gradients of two calls differ so, and the values do not.
    stateful_backward: bool = False
    #: The fields of `Supports` for which a Function of a call writes a rule: a `vmap`, a `jvp`.
    rules: tuple[str, ...] = ()
    #: The buffers and frozen parameters of a module in training that forward changes.
    moved: tuple[str, ...] = ()
    #: Whether the tensors of the output are in a dict, in nested lists or beside something else.
    nested: bool = False
    #: The arguments with which the output changes smoothly, and to which no gradient flows: backward returns None.
    ignored: tuple[str, ...] = ()
    #: The arguments of a call that the output moves with, and that get no gradient.
    lost: tuple[Lost, ...] = ()
    #: The arguments that are not marked, as others of the call are, and to which a gradient is stopped by name; where.
    stopped: Mapping[str, str] = field(default_factory=dict)
    #: The outputs without a graph that move, beside others with one.
    graphless: tuple[Graphless, ...] = ()
    #: By the name of a case, the finding of a backward that torch does not call in it.
    uncalled: Mapping[str, Finding] = field(default_factory=dict)
    #: The parameters whose tensors a Function gets inside a list, where torch does not look for them.
    hidden: tuple[str, ...] = ()
    #: The floating-point arguments with which the output does not change.
    unused: tuple[str, ...] = ()
    #: The arguments whose gradient is zero wherever the arguments are.
    zero: tuple[str, ...] = ()
    #: The arguments whose gradient is the same, and not zero, wherever the arguments are.
    fixed: tuple[str, ...] = ()
    #: The arguments at whose zero the value is finite and the gradient is not.
    infinite_at_zero: tuple[str, ...] = ()
    #: Whether the output of a call is infinite or NaN in places, and finite in others.
    is_partly_finite: bool = False
    #: Whether it computes in float32 where it is given float64.
    in_float32: bool = False
    #: What the first plain call that failed raised, and on which case.
    raised: str = ""
    #: The name of that case; empty where there is but one.
    raised_on: str = ""
    #: What is said of that, where it is not that the function does not take the arguments.
    refused: Finding | None = None
    #: The dtype of an output with a gradient in which torch has no arithmetic: "float8_e4m3fn".
    no_arithmetic: str = ""

    @property
    def is_noisy(self) -> bool:
        """Whether forward or backward draws."""
        return self.noisy_forward or self.noisy_backward

    @property
    def is_repeatable(self) -> bool:
        """Whether a second call gives the same, without a seed."""
        return not (self.is_noisy or self.keeps_state)

    @property
    def keeps_state(self) -> bool:
        """Whether two calls differ though the generators are seeded alike."""
        return self.stateful or self.stateful_backward
