"""Whether a gradient has the right numbers in other places: shifted, reversed, or of a call that is transposed."""

from __future__ import annotations

import torch

from gradspec.explain._repaired import repaired
from gradspec.explain._saved import of_a_saved_tensor
from gradspec.explain._wrong import Wrong, some
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import Inputs, like, vjp
from gradspec.laws.tensor.support._reference import reference

#: In how many directions a product is compared, how near it is, and how far off the gradient is.
_DIRECTIONS, _NEAR, _FAR = 3, 1e-6, 1e-3


def not_transposed(wrong: Wrong) -> Reason | None:
    """Whether backward does to the cotangent what forward does to the argument, and not the transposed of it.

    With J the derivative of forward, it gives J v in place of J^H v. What mends that is said in its place.
    """
    (v, *rest), got = wrong.v, wrong.got
    if rest or v.shape != got.shape or v.dtype != got.dtype or v.numel() < 2:
        return None
    if bool((got - wrong.expected).norm() <= _FAR * got.norm()):
        return None  # where the derivative is symmetric, a small mistake is none of this
    for k in range(_DIRECTIONS):  # <u, J v> is <J^H u, v> for each u
        (u,) = like((v,), wrong.trial.seed + k)
        turned = some(vjp(reference(wrong.trial.spec), wrong.inputs, (u.clone(),))[wrong.name])
        off = ((u.conj() * got).sum() - (turned.conj() * v).sum()).abs()
        if not bool(off <= max(_NEAR, 64 * torch.finfo(v.dtype).eps) * u.norm() * got.norm()):
            return None
    if (mended := of_a_saved_tensor(wrong) or repaired(wrong)) is not None:
        return mended
    said = f"backward does to the cotangent what forward does to `{wrong.name}`, and must do the transposed of it"
    return Reason(kind="not transposed", words=said)


def moved(wrong: Wrong) -> Reason | None:
    """Whether it is the right one, shifted or reversed along a dimension."""
    got, expected = wrong.got, wrong.expected
    for dim, size in enumerate(expected.shape):
        if size == 2 and wrong.same(got, expected.flip(dim)):
            said = f"it is the right gradient with its two elements along dimension {dim} exchanged"
            exchanged = Reason(kind="reversed", words=said, evidence={"dimension": dim})
            return repaired(wrong) or exchanged
        if size > 2 and wrong.same(got, expected.flip(dim)):
            said = f"it is the right gradient in the reverse order along dimension {dim}"
            return Reason(kind="reversed", words=said, evidence={"dimension": dim})
        for by in range(1, size) if size > 2 else ():
            if wrong.same(got, expected.roll(by, dim)):
                by = by if by <= size // 2 else by - size
                said = f"it is the right gradient shifted by {by} along dimension {dim}: an index is off"
                return Reason(kind="shifted", words=said, evidence={"dimension": dim, "by": by})
    return None


def permuted(wrong: Wrong) -> Reason | None:
    """Whether it has the right numbers along a dimension, in other places."""
    for dim in range(wrong.expected.ndim):
        got, expected = (t.sort(dim).values for t in (wrong.got, wrong.expected))
        if expected.shape[dim] > 2 and wrong.same(got, expected):
            said = f"it has the right numbers along dimension {dim}, in other places: an index is wrong"
            return Reason(kind="permuted", words=said, evidence={"dimension": dim})
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
