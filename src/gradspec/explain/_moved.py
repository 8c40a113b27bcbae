"""Whether a gradient has the right numbers in other places: shifted, reversed, or of a call that is transposed."""

from __future__ import annotations

from gradspec.explain._wrong import Wrong, some
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import Inputs, vjp
from gradspec.laws.tensor.support._reference import reference


def moved(wrong: Wrong) -> Reason | None:
    """Whether it is the right one, shifted or reversed along a dimension."""
    got, expected = wrong.got, wrong.expected
    for dim, size in enumerate(expected.shape):
        if size > 2 and wrong.same(got, expected.flip(dim)):
            said = f"it is the right gradient in the reverse order along dimension {dim}"
            return Reason(kind="reversed", words=said, evidence={"dimension": dim})
        for by in range(1, size):
            if wrong.same(got, expected.roll(by, dim)):
                by = by if by <= size // 2 else by - size
                said = f"it is the right gradient shifted by {by} along dimension {dim}: an index is off"
                return Reason(kind="shifted", words=said, evidence={"dimension": dim, "by": by})
    return None


def along_another_dimension(wrong: Wrong) -> Reason | None:
    """Whether it is the right one of the transposed call, transposed: what is done goes along the other dimension."""
    values = {n: t.mT if n in wrong.inputs.wrt and t.ndim == 2 else t for n, t in wrong.inputs.values.items()}
    if not all(t.ndim == 2 for t in wrong.v) or wrong.got.ndim != 2:
        return None
    turned = vjp(reference(wrong.trial.spec), Inputs(values, wrong.inputs.wrt), tuple(t.mT for t in wrong.v))
    if not wrong.same(wrong.got, some(turned[wrong.name]).mT):
        return None
    said = "backward goes along the other dimension: it is right for the transposed call, transposed"
    return Reason(kind="other dimension", words=said)
