r"""Backward gives the same gradient whatever the strides of the cotangent.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: the cotangent of `sum()` is expanded, that of `cat` is a slice, that of a transpose is transposed;
gradcheck
feeds only contiguous ones.

What breaks it: `cotangent.view(...)`, a kernel that assumes contiguous memory, an in-place operation on an expanded
cotangent.

Remedy: use `reshape`, or call `contiguous()` first.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable, raised
from gradspec.laws.tensor._uninitialized_memory import unwritten_of
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import Results, compare_all
from gradspec.laws.tensor.support._differences import single
from gradspec.laws.tensor.support._passes import PLAIN, Pass, called, in_each_pass
from gradspec.laws.tensor.support._reference import on_spec_side, plain_call
from gradspec.laws.tensor.support._strides import REFUSED, LayOut, in_order, with_cause_of_strides

#: What is said where a gradient is that of the numbers as they lie in memory, and where it is right without strides.
STRIDED = "backward reads the memory of the cotangent, whatever its strides: as_strided(), a kernel; call contiguous()"
CONTIGUOUS = "right where the same cotangent is contiguous: its strides decide what is computed, so call contiguous()"
#: What torch says of a view that the strides do not allow, and of a write to numbers that share their memory; and why.
_SAID = {
    REFUSED: "backward assumes contiguous memory: use reshape() for view()",
    "refers to a single memory location": "backward writes to the cotangent: clone() it first",
}


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    y = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    v = like(y, trial.seed)
    for name, lay_out in LAYOUTS.items():
        laid_out = tuple(map(lay_out, v))
        # First, for the function may change the cotangent; contiguous, for in an audit it is its own reference.
        expected = vjp(plain_call(trial.spec, inputs), inputs, tuple(t.contiguous() for t in laid_out))
        try:
            got = vjp(trial.spec.function, inputs, laid_out)
        except Exception as error:
            return raised(error, f"a cotangent that is {name}", argument=f"cotangent, {name}", likely=_likely(error))
        finding = compare_all(trial, "gradient", got, expected, when=f"{name} cotangent")
        if finding is not HOLDS:
            unwritten = unwritten_of(lambda: _delivered(trial, inputs, laid_out))  # noqa: B023  # called at once
            if unwritten is not None:
                return finding.because(unwritten.reason)
            return _explained(finding, expected, lambda by: _of(trial, inputs, tuple(map(by, v))), lay_out)
    return in_each_pass(trial, lambda way: HOLDS if way is PLAIN else _watch(trial, inputs, way))


def _explained(
    finding: Finding, expected: Results, gradients_of: Callable[[LayOut], Results], lay_out: LayOut
) -> Finding:
    """Return the finding with its cause, where the gradients of cotangents that are laid out otherwise show it."""

    def contiguous(t: Tensor) -> Tensor:
        return lay_out(t).contiguous()

    def reading(t: Tensor) -> Tensor:
        return in_order(lay_out(t))

    return with_cause_of_strides(
        finding,
        expected,
        lambda: gradients_of(lay_out),
        lambda: gradients_of(contiguous),
        lambda: (gradients_of(reading),),
        memory=STRIDED,
        asked=CONTIGUOUS,
    )


def _of(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...]) -> dict[str, Tensor | None]:
    """Return the gradients of cotangents that backward is handed as they are."""
    leaves = inputs.leaves()
    return gradients(outputs(trial.spec.function(*inputs.args(leaves))), leaves, v, copied=False)


def _delivered(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...]) -> dict[str, Tensor]:
    return {name: g for name, g in vjp(trial.spec.function, inputs, v).items() if g is not None}


def _likely(error: Exception) -> str:
    return next((likely for said, likely in _SAID.items() if said in str(error)), "")


def _watch(trial: Trial, inputs: Inputs, way: Pass) -> Finding:
    """Compare the gradients of a pass with those of the same cotangents, contiguous."""
    for name in ("transposed", "expanded"):
        lay_out = LAYOUTS[name]

        def contiguous(t: Tensor, lay_out: LayOut = lay_out) -> Tensor:
            return lay_out(t).contiguous()

        expected = _gradients(trial, inputs, way, contiguous)
        try:
            got = _gradients(trial, inputs, way, lay_out)
        except Exception as error:
            return raised(error, f"a cotangent that is {name}", argument=f"cotangent, {name}", likely=_likely(error))
        finding = compare_all(trial, "gradient", got, expected, when=f"{name} cotangent")
        if finding is not HOLDS:
            return _explained(finding, expected, lambda by: _gradients(trial, inputs, way, by), lay_out)
    return HOLDS


def _gradients(trial: Trial, inputs: Inputs, way: Pass, lay_out: LayOut) -> dict[str, Tensor | None]:
    """Return the gradients of a pass by name, but those of third order: where logits are large, these lack digits.

    Those of second order are compared as float32: numbers that are read wrongly are others.
    """
    leaves, found = way.leaves(inputs), dict[str, Tensor | None]()
    for number, order in enumerate(way.orders(called(trial, way, inputs, leaves), leaves, trial.seed), 1):
        order.cotangents = {
            n: lay_out(t.detach()).requires_grad_(not order.is_last) for n, t in order.cotangents.items()
        }
        got = order.differentiate()
        found |= {
            f"{n}, order {number}": single(t) if number == 2 and t is not None and t.itemsize > 4 else t
            for n, t in got.items()
            if number < 3
        }
    return found


#: Each makes a cotangent of another layout; the last one of other values too.
LAYOUTS: dict[str, LayOut] = {
    "transposed": lambda t: _reversed(_reversed(t).contiguous()),
    "every other element": lambda t: torch.stack((t, torch.full_like(t, 7)), -1)[..., 0],
    "a slice behind an offset": lambda t: torch.cat((t.new_zeros(7), t.flatten()))[7:].view(t.shape),
    "expanded": lambda t: t.flatten()[:1].sum().expand(t.shape),
}


def _reversed(t: Tensor) -> Tensor:
    return t.permute(tuple(reversed(range(t.ndim))))


COTANGENT_LAYOUT = Law(
    name="cotangent_layout",
    family="protocol",
    statement=r"B(v) = B(\operatorname{contiguous}(v))",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
