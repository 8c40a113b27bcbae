"""Whether an argument or a cotangent is rounded to float32 on the way: it is moved by less than one holds."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import WIDE, Inputs, cotangents, gradients, outputs

#: Parts by which a number is moved: a float32 shows the one, and not the other.
_SHOWN, _HIDDEN = 2**-20, 2**-40
#: How many elements may cross a step by chance, and how many must move clearly.
_FEW, _MOST = 0.01, 0.5


def why_rounded(trial: Trial) -> Reason | None:
    """Return which argument is rounded, and which result does not see it move; None where each sees each."""
    inputs = Inputs.of(trial)
    values = outputs(trial.spec.function(*inputs.args()))
    for _, v in cotangents(trial, values):
        rest = _results(trial, inputs, v)
        moves = {part: dict(_moved(inputs, v, part)) for part in (_HIDDEN, _SHOWN)}
        for name, hidden in moves[_HIDDEN].items():
            little, clearly = (_results(trial, *at) for at in (hidden, moves[_SHOWN][name]))
            for result, at in rest.items():
                if _is_deaf(at, little[result], clearly[result]):
                    words = f"{name} is rounded to float32 on the way to {result}, which its last digits do not move"
                    return Reason(kind="rounded", words=words, evidence={"what": name, "result": result})
    return None


def _moved(
    inputs: Inputs, v: tuple[Tensor, ...], part: float
) -> Iterator[tuple[str, tuple[Inputs, tuple[Tensor, ...]]]]:
    """Yield the call with one argument in float64 moved by a part of itself, and with the cotangents moved."""
    for name in inputs.wrt:
        if (x := inputs.values[name]).dtype in WIDE:
            yield f"`{name}`", (Inputs({**inputs.values, name: _beside(x.detach(), part)}, inputs.wrt), v)
    if any(t.dtype in WIDE for t in v):
        yield "the cotangent", (inputs, tuple(_beside(t, part) for t in v))


def _beside(x: Tensor, part: float) -> Tensor:
    """Return numbers moved by that part of themselves or less, each by its own: no scale of all of them cancels it."""
    by = torch.linspace(0.5, 1.0, x.numel(), dtype=torch.float64, device=x.device)
    return x * (1 + part * by.view(x.shape))


def _results(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Return the values and the gradients of a call that are in float64."""
    leaves = inputs.leaves()
    values = outputs(trial.spec.function(*inputs.args(leaves)))
    found = {"the value" if len(values) == 1 else f"output {place}": t for place, t in enumerate(values)}
    found |= {f"the gradient of `{n}`": g for n, g in gradients(values, leaves, v).items() if g is not None}
    return {name: t.detach() for name, t in found.items() if t.dtype in WIDE}


def _is_deaf(at: Tensor, little: Tensor, clearly: Tensor) -> bool:
    if not (given := int(at.count_nonzero())):
        return False
    moves = (at - clearly).abs() > 2**-8 * _SHOWN * at.abs()
    return int((at != little).sum()) <= _FEW * given and int(moves.sum()) >= _MOST * given
