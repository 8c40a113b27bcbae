"""The spec of a module, as frozen data, and how to build the module of a case."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gradspec._renamed import renamed
from gradspec.spec._base import (
    Argument,
    Case,
    Difference,
    Make,
    Misuse,
    Reference,
    Spec,
    check_callable,
    check_common,
    check_names,
)
from gradspec.spec._base import Waiver as Waiver  # Sphinx resolves here what the fields of the base are made of
from gradspec.spec._fields import check_fields, check_promises
from gradspec.spec._forms import forms
from gradspec.spec._invocation import Invocation, bound

if TYPE_CHECKING:
    from torch import nn


#: The parameters of a call that takes any.
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
#: How a case and a spec are written.
_CASE = 'ModuleCase(name="rows", args=(3, 2), inputs=(make(4, 3),), output=(2,))'
_FORM = "ModuleSpec(name='linear', module=torch.nn.Linear, cases=cases, wrt=('input',))"


@dataclass(frozen=True, kw_only=True)
class ModuleCase(Case):
    """One representative use: how the module is made (`args`, `kwargs`), and what it is then called with.

    Args:
        name (str): Unique in its spec, in words: it is the name on the command line and in the tables.
        args (tuple of Any): The positional arguments, tensors included.
        kwargs (Mapping, optional): The keyword arguments.
        inputs (tuple of Any, optional): The arguments of the call; the batch is the first dimension of each tensor.
        output (tuple of int, optional): The shape of the output without its batch dimension; None where the output is
            not one tensor with a batch.
        training (bool, default False): The mode of a wrong call, and of the law `module_compile`.

    Example:
        >>> import torch
        >>> from gradspec.spec import ModuleCase
        >>> ModuleCase(name="rows", args=(3, 2), inputs=(torch.ones(4, 3),), output=(2,)).training
        False
    """

    #: The arguments of the call; the batch is the first dimension of each tensor. None: it is never called.
    inputs: tuple[Any, ...] | None = None
    #: The shape of the output without its batch dimension; None where the output is not one tensor with a batch.
    output: tuple[int, ...] | None = None
    #: The mode of a wrong call, and of the law `module_compile`. Every other law chooses its own.
    training: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("inputs", "output"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, tuple | list):
                kind = type(value).__name__
                raise TypeError(f"case {self.name!r}: {name} is of type {kind}, expected a tuple: write {_CASE}")


@dataclass(frozen=True, kw_only=True)
class StateContract:
    """The contents of a module's checkpoints: the keys that published ones have too."""

    #: The keys of `state_dict()`, all of them.
    keys: tuple[str, ...]
    #: What a published checkpoint may hold beside them, and loading drops: the shape of each tensor, by key.
    dropped: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@forms("ModuleSupports(compile=True)")
@dataclass(frozen=True, kw_only=True)
class ModuleSupports:
    """What is promised: True, that it works; False, that it is refused, which is tested too; None, neither.

    Args:
        compile (bool, optional): `torch.compile(fullgraph=True)`, in training and in evaluation.
        export (bool, optional): `torch.export.export(...).module()`, in evaluation.
        functional (bool, optional): `torch.func.functional_call`, and `torch.func.grad` and `torch.vmap` of it.
        copies (bool, default True): `copy.deepcopy` and `pickle`.
        precision (bool, default True): Evaluation in float32 and bfloat16.
        channels_last (bool, default True): Inputs and parameters in `torch.channels_last`.

    Example:
        >>> from gradspec.spec import ModuleSupports
        >>> ModuleSupports(compile=True).copies
        True
    """

    #: `torch.compile(fullgraph=True)`, in training and in evaluation.
    compile: bool | None = None
    #: `torch.export.export(...).module()`, in evaluation.
    export: bool | None = None
    #: `torch.func.functional_call`, and `torch.func.grad` and `torch.vmap` of it.
    functional: bool | None = None
    #: `copy.deepcopy` and `pickle`.
    copies: bool = True
    #: Evaluation in float32 and bfloat16.
    precision: bool = True
    #: Inputs and parameters in `torch.channels_last`.
    channels_last: bool = True

    def __post_init__(self) -> None:
        check_promises(self)

    @classmethod
    def all(cls, **promised: bool | None) -> ModuleSupports:
        """Return the promise of everything, but for what is given.

        Example:
            >>> from gradspec.module_spec import ModuleSupports
            >>> ModuleSupports.all(export=False).compile
            True
        """
        return cls(**{**dict.fromkeys((field.name for field in fields(cls)), True), **promised})  # type: ignore[arg-type]


@renamed(documents="documented", attempt="invocation")
@forms(_FORM)
@dataclass(frozen=True, kw_only=True)
class ModuleSpec(Spec):
    """The promise of one `torch.nn.Module`.

    Its `cases` yield a `ModuleCase` each, and so do its `raises`: if `inputs` is None the construction is wrong,
    otherwise the call.

    Args:
        name (str): Unique in a report.
        cases (Callable): A generator of representative uses.
        raises (Callable, optional): A generator of wrong constructions and calls, and the error that each gets.
        summary (str, optional): One sentence that a user could search for; left out, the first of the docstring of what
            is documented.
        arguments (tuple of Argument, optional): The arguments of the call, for the page.
        documented (tuple of Any, optional): The objects whose docstrings carry the examples that the law `examples`
            runs.
        version (int, default 1): Moves when the promise changes.
        supports (ModuleSupports, optional): What is promised beside training, `ModuleSupports(compile=True)`.
        waivers (tuple of Waiver, optional): Laws that are not expected to hold on a case, each with the reason.
        references (tuple of Reference, optional): Where the definitions come from.
        differences (tuple of Difference, optional): How the published class behaves otherwise.
        module (Callable): The class, or what makes a module when it is called.
        state (Callable, optional): The keys of a state, from the arguments of the constructor.
        wrt (tuple of str): The arguments of the call to which a gradient flows; `arguments` are those of the
            constructor.
        inputs (tuple of Argument, optional): The arguments of the call, for the page.
        returns (str, optional): One sentence on the output, with its shape, for the page.
        frozen (tuple of str, optional): The parameters to which no gradient flows, in any mode.
        written_in_backward (tuple of str, optional): The parameters and buffers that a backward pass writes, as a
            memory bank that keeps the rows of the last step.
        data_parallel (tuple of str, optional): Under which wrappers halves of a batch on two ranks give the gradients
            of the whole batch: "ddp", for DistributedDataParallel, and "fsdp2", for `fully_shard`.

    Raises:
        ValueError: `module`, `cases` or `state` cannot be called, or `data_parallel` names another wrapper.

    Example:
        >>> import torch
        >>> from gradspec import ModuleCase, ModuleSpec, verify
        >>> def cases(make):
        ...     yield ModuleCase(name="rows", args=(3, 2), inputs=(make(4, 3),), output=(2,))
        >>> spec = ModuleSpec(name="linear", module=torch.nn.Linear, cases=cases, wrt=("input",))
        >>> verify([spec]).check()
    """

    kind: ClassVar[str] = "module"

    #: The class, or what makes a module when it is called.
    module: Callable[..., nn.Module]
    #: A generator of representative uses.
    cases: Callable[[Make], Iterator[ModuleCase]]
    #: A generator of wrong constructions and calls, and the error that each gets.
    raises: Callable[[Make], Iterator[Misuse]] | None = None
    #: The keys of a state, from the arguments of the constructor.
    state: Callable[..., StateContract] | None = None
    #: The arguments of the call to which a gradient flows; `arguments` are those of the constructor.
    wrt: tuple[str, ...]
    #: The arguments of the call, for the page.
    inputs: tuple[Argument, ...] = ()
    #: One sentence on the output, with its shape, for the page.
    returns: str = ""
    #: The parameters to which no gradient flows, in any mode.
    frozen: tuple[str, ...] = ()
    #: The parameters and buffers that a backward pass writes, as a memory bank that keeps the rows of the last step.
    written_in_backward: tuple[str, ...] = ()
    #: What is promised beside training, `ModuleSupports(compile=True)`.
    supports: ModuleSupports = ModuleSupports()
    #: Under which wrappers halves of a batch on two ranks give the gradients of the whole batch: "ddp", for
    #: DistributedDataParallel, and "fsdp2", for `fully_shard`. What is not named is not asked, for each takes seconds.
    data_parallel: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    #: How the published class behaves otherwise.
    differences: tuple[Difference, ...] = ()

    def __post_init__(self) -> None:
        check_names(self, "wrt", "frozen", "written_in_backward", "data_parallel")
        check_common(self)
        check_fields(self, f"spec {self.name!r}", supports=ModuleSupports, inputs=(Argument,), returns=str)
        if not isinstance(self.module, type) and hasattr(self.module, "named_parameters"):
            made = type(self.module).__name__
            raise ValueError(
                f"spec {self.name!r}: module is an instance: give {made}, and its arguments in a ModuleCase"
            )
        check_callable(self, "module", "cases", *(["state"] if self.state is not None else []))
        names, is_open = self.call_parameters(), any(one.kind in _OPEN for one in self._call)
        for name in self.wrt:
            if names and name not in names and not is_open:
                said = f"wrt names {name!r}, which is not an argument of forward({', '.join(names)})"
                raise ValueError(f"spec {self.name!r}: {said}")
        for name in self.data_parallel:
            if name not in ("ddp", "fsdp2"):
                raise ValueError(f"spec {self.name!r}: data_parallel names {name!r}, expected 'ddp' or 'fsdp2'")

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of `cases` and of the class, the latter only if in the same package."""
        found = (getattr(subject, "__module__", None) or "__main__" for subject in (self.cases, self.module))
        return tuple(dict.fromkeys(found))

    def invocation(self, case: Case) -> Invocation:
        """Return the construction of a case, or the call of a module that has been constructed."""
        name = getattr(self.module, "__qualname__", self.name)
        made = (name, case.args, case.kwargs)
        if not isinstance(case, ModuleCase) or case.inputs is None:
            return Invocation(written=(made,), call=lambda: self.module(*case.args, **case.kwargs), values={})
        inputs = case.inputs
        module = self.module(*case.args, **case.kwargs).train(case.training)
        given = {f"argument {place}": value for place, value in enumerate(inputs)}
        return Invocation(
            written=(made, ("", inputs, {})),
            call=lambda: module(*inputs),
            values={**given, **{f"`{key}`": value for key, value in module.state_dict().items()}},
        )

    @property
    def described_arguments(self) -> tuple[Argument, ...]:
        """Return the arguments of the constructor, then those of the call."""
        return (*self.arguments, *self.inputs)

    def named(self, case: Case) -> Mapping[str, Any]:
        """Return the values that the module of a case is made of and called with, by name."""
        made = bound(inspect.signature(self.module), case.args, case.kwargs)
        inputs = case.inputs if isinstance(case, ModuleCase) else None
        return {**made, **dict(zip(self.call_parameters(), inputs or (), strict=False))}

    def call_parameters(self) -> tuple[str, ...]:
        """Return the names of the arguments of the call, in order, read off the `forward` of the class."""
        return tuple(one.name for one in self._call)

    @property
    def _call(self) -> list[inspect.Parameter]:
        forward = getattr(self.module, "forward", None)
        return [*inspect.signature(forward).parameters.values()][1:] if forward is not None else []

    def for_(self, module: Callable[..., nn.Module], *, name: str) -> ModuleSpec:
        """Hold another implementation to the same promise.

        Args:
            module: a published class, a user's; constructed and called as this spec's module is.
            name: its name in the report.

        Returns:
            A copy of this spec about `module`, without the examples and differences, which are ours.
        """
        return replace(self, name=name, module=module, documented=(), differences=())
