r"""Backward gives the same gradient whatever the strides of the cotangent.

Why it matters: the cotangent of `sum()` is expanded, that of `cat` is a slice, that of a transpose is transposed;
gradcheck feeds contiguous ones only.

What breaks it: `cotangent.view(...)`, a kernel that assumes contiguous memory, an in-place operation on an expanded
cotangent.

Remedy: use `reshape`, or call `contiguous()` first.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable, raised
from gradspec.laws.tensor._call import Inputs, like, outputs, vjp
from gradspec.laws.tensor._compare import compare_all
from gradspec.laws.tensor._reference import on_spec_side, reference


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    y = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    v = like(y, trial.seed)
    for name, laid_out in _layouts(v):
        expected = vjp(reference(trial.spec), inputs, laid_out)  # first: the function may change the cotangent
        try:
            got = vjp(trial.spec.function, inputs, laid_out)
        except Exception as error:
            likely = "backward assumes contiguous memory: use reshape() for view()"
            return raised(error, f"a cotangent that is {name}", argument=f"cotangent, {name}", likely=likely)
        finding = compare_all(trial, f"gradient ({name} cotangent)", got, expected)
        if finding is not HOLDS:
            return finding
    return HOLDS


def _layouts(v: tuple[Tensor, ...]) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    yield "transposed", tuple(_reversed(_reversed(t).contiguous()) for t in v)
    yield "every other element", tuple(torch.stack((t, -t), -1)[..., 0] for t in v)
    yield "a slice behind an offset", tuple(torch.cat((t.new_zeros(7), t.flatten()))[7:].view(t.shape) for t in v)
    yield "expanded", tuple(t.flatten()[:1].sum().expand(t.shape) for t in v)


def _reversed(t: Tensor) -> Tensor:
    return t.permute(tuple(reversed(range(t.ndim))))


COTANGENT_LAYOUT = Law(
    name="cotangent_layout",
    family="protocol",
    statement=r"B(v) = B(\operatorname{contiguous}(v))",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    specimens=("views_its_cotangent",),
)
