"""A call of an operator itself, with its writes: its arguments by name, and the tensors among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_map

from gradspec.law import TrialOf
from gradspec.laws.tensor.support._call import bound, differentiable, fresh
from gradspec.spec import Case, OperatorSpec
from gradspec.spec._schema import signature_of, written


@dataclass(frozen=True)
class Call:
    """The arguments of one call, copies that the law owns, by the names of the schema."""

    overload: Any
    values: Mapping[str, Any]
    wrt: tuple[str, ...]

    @classmethod
    def of(cls, trial: TrialOf[OperatorSpec, Case]) -> Call:
        """Bind a case to the schema."""
        overload = trial.spec.overload
        values = bound(signature_of(overload._schema), trial.case)
        return cls(overload, tree_map(fresh, values), tuple(name.partition("[")[0] for name in trial.spec.wrt))

    @property
    def keyword_only(self) -> frozenset[str]:
        """The arguments that are given by name."""
        return frozenset(argument.name for argument in self.overload._schema.arguments if argument.kwarg_only)

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments."""
        return tuple(value for name, value in self.values.items() if name not in self.keyword_only)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return {name: value for name, value in self.values.items() if name in self.keyword_only}

    def run(self) -> Any:
        """Call the operator, which may write to the values."""
        return self.overload(*self.args, **self.kwargs)

    def mapped(self, change: Callable[[Any], Any]) -> Call:
        """Return the call with each value, those in lists too, changed."""
        return Call(self.overload, tree_map(change, dict(self.values)), self.wrt)

    def on_leaves(self) -> Call:
        """Return the call on new leaves where a gradient is promised."""

        def leaf(value: Any) -> Any:
            return value.detach().clone().requires_grad_() if differentiable(value) else value

        values = {name: tree_map(leaf, v) if name in self.wrt else v for name, v in self.values.items()}
        return Call(self.overload, values, self.wrt)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the call by the names that a message uses: "`x`", "`xs[0]`"."""
        found, _ = tree_flatten_with_path(dict(self.values))
        return {f"`{_named(path)}`": value for path, value in found if isinstance(value, Tensor)}

    def written_tensors(self) -> list[str]:
        """Return the names of the tensors that the schema says are written."""
        names = written(self.overload._schema)
        return [name for name in self.tensors() if name.strip("`").partition("[")[0] in names]

    @property
    def leaves(self) -> dict[str, Tensor]:
        """The tensors that require a gradient, by the names that a message uses."""
        return {name: tensor for name, tensor in self.tensors().items() if tensor.requires_grad}


def _named(path: Any) -> str:
    """Return a path in the arguments as Python writes it."""
    return keystr(path[:1])[2:-2] + keystr(path[1:])
