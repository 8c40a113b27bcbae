r"""The value and the gradient are the same whatever the strides of the inputs.

Why it matters: inputs come transposed, sliced, expanded and channels-last; a kernel that reads memory in order
reads them wrong.

What breaks it: `x.view(...)` on a non-contiguous tensor, a kernel that assumes contiguous memory.

Remedy: use `reshape`, or call `contiguous()` first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, differentiable, outputs, vjp
from gradspec.laws.tensor.support._compare import compare, compare_all
from gradspec.laws.tensor.support._reference import module_state, on_spec_side, plain_call

STRIDES = "memory is read as if it were contiguous: as_strided(), data_ptr(), a kernel without strides"


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not any(differentiable(value) for value in inputs.values.values()):
        return not_applicable("no floating-point input in this case")
    plain = plain_call(trial.spec, inputs)
    primal = trial.spec.primal if plain is not trial.spec.function else plain
    expected = outputs(on_spec_side("primal", primal, *inputs.args()))
    right = vjp(plain, inputs, seed=trial.seed) if inputs.wrt else {}
    for name, values in _layouts(inputs, module_state(trial.spec)):
        laid_out = Inputs(values, inputs.wrt)
        try:
            y = outputs(trial.spec.function(*laid_out.args()))
            got = vjp(trial.spec.function, laid_out, seed=trial.seed) if inputs.wrt else {}
        except Exception as error:
            return raised(error, f"inputs that are {name}", likely="view() where reshape() is needed")
        for mine, theirs in zip(y, expected, strict=True):
            if (finding := compare(trial, f"value ({name} inputs)", mine, theirs, likely=STRIDES)) is not HOLDS:
                return finding
        finding = compare_all(trial, "gradient", got, right, when=f"{name} inputs", likely=STRIDES)
        if finding is not HOLDS:
            return finding
    return HOLDS


def _layouts(inputs: Inputs, state: frozenset[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the arguments in other strides.

    Parameters and buffers of a module come in another order, as `channels_last` has them, and never with gaps: nobody
    keeps them so, and the batch normalisation of torch misreads them then.
    """
    for name, lay_out in (("contiguous", torch.Tensor.contiguous), ("transposed", _transposed), ("sliced", _sliced)):
        moved = {n: v for n, v in inputs.values.items() if lay_out is not _sliced or n not in state}
        strided = {n: v for n, v in moved.items() if _has_strides(v)}
        yield name, {**inputs.values, **{n: lay_out(v) for n, v in strided.items()}}


def _has_strides(value: Any) -> bool:
    """Whether a value has strides that torch can change."""
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.is_quantized


def _transposed(t: Tensor) -> Tensor:
    dims = tuple(reversed(range(t.ndim)))
    return t.permute(dims).contiguous().permute(dims)


def _sliced(t: Tensor) -> Tensor:
    return torch.stack((t, t), -1)[..., 0]


LAYOUT = Law(
    name="layout",
    family="inputs",
    statement=r"F(x) = F(\operatorname{contiguous}(x))",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
