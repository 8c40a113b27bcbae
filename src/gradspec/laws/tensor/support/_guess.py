"""Guess a mistake from the numbers of a result, without another call."""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec.law import Reason
from gradspec.laws.tensor.support._call import WIDE, differentiable

#: Nearer to 1 than this a factor is said by how much it differs.
NEAR = 0.005
_NARROW = (torch.bfloat16, torch.float16, torch.float32)
#: Fewer different numbers than this, as those of a mask, are in a narrow type by chance; and a result that is farther
#: off, of its largest element or by so many units of that type, is wrong in another way.
_FEW, _FAR, _UNITS = 3, 0.1, 1024
#: What is said of what has the digits of a float32.
EXACT = "as exact as a float32"
SHORT = f"{EXACT}; where that is meant, declare accuracy=Accuracy(rtol=...), or --accuracy rtol=..."


def guess(got: Tensor, expected: Tensor, *, is_derivative: bool) -> Reason | None:
    """Name the likely cause from the shape of the error."""
    if not differentiable(got):
        return _counted(got, expected)
    if not got.any():
        return Reason(kind="zero", words="the result is zero" + (" in place of a gradient" if is_derivative else ""))
    if torch.allclose(got, -expected, rtol=1e-9, atol=0):
        return factor_reason(-1.0)
    if found := narrow(got, expected) or _overflow(got, expected):
        return found
    ratio = (got / expected).flatten()
    ratio = ratio[ratio.isfinite()]
    # One factor for all of them to more digits than tell it from 1: rounding in a narrower dtype is none.
    if ratio.numel() > 1 and torch.allclose(got, ratio[0] * expected, rtol=min(1e-6, _off(ratio[0])), atol=0):
        return factor_reason(ratio[0].item())
    if torch.equal(got.abs(), expected.abs()):
        flipped = int((got != expected).sum())
        return Reason(kind="sign", words=f"the sign is flipped in {flipped} of {got.numel()} elements")
    if ratio.numel() > 1 and torch.equal(got.flatten().abs().sort().values, expected.flatten().abs().sort().values):
        said = "the right numbers stand in the wrong places: an operand is transposed or a view misread"
        return Reason(kind="places", words=said)
    return Reason(kind="digits", words=SHORT) if has_digits_of_float32(got, expected) else None


def of_float32(got: Tensor, expected: Tensor) -> bool:
    """Whether a result in float64 is off by no more than what float32 rounds on the way: training in float32 sees none.

    Either each of its numbers is a float32, or each is off by no more than a constant that is rounded to one.
    """
    if got.dtype not in WIDE:
        return False
    eps, off = torch.finfo(torch.float32).eps, (got - expected).abs()
    if narrow_type_of(got) == "float32" and _largest(off) <= 32 * eps * _largest(expected):
        return True
    return bool((off <= 2 * eps * expected.abs()).all())


def factor_reason(found: float | complex, *, is_everywhere: bool = True, of: str = "") -> Reason:
    """Return as a reason that a result is the right one times a number.

    Args:
        found: the number.
        is_everywhere: whether no element of the right one is 0.
        of: what the number is, as "1 / `scale`".
    """
    elements = "every element" if is_everywhere else "every element that is not 0"
    if abs(found + 1) < 1e-6:
        return Reason(kind="sign", words="the sign is flipped")
    if abs(found - 1) < NEAR:
        off = f"{abs(found - 1):.2g}"
        return Reason(kind="rounding", words=f"{elements} is off by {off} of itself", evidence={"off": off})
    whole = round((1 / found).real)
    if abs(1 / found - whole) < 1e-9 * abs(whole) and abs(whole) > 2:
        of = of or f"1 / {whole}"
    words = f"{elements} is off by the factor {found:.3g}" + (f", which is {of}" if of else "")
    factor = found if isinstance(found, float) else str(found)
    return Reason(kind="factor", words=words, evidence={"factor": factor} | ({"is": of} if of else {}))


def _counted(got: Tensor, expected: Tensor) -> Reason | None:
    """Say by how much integers are off, where all are off by as much."""
    off = (got.double() - expected.double()).unique().tolist()  # type: ignore[no-untyped-call]
    if got.dtype is torch.bool or got.numel() < 2 or len(off) > 1:
        return None
    said = f"every element is {abs(off[0]):g} too {'large' if off[0] > 0 else 'small'}"
    return Reason(kind="count", words=said, evidence={"off": off[0]})


def _off(factor: Tensor) -> float:
    return abs(factor.item() - 1) / 100


def _overflow(got: Tensor, expected: Tensor) -> Reason | None:
    """Say what makes half precision infinite, where the right result is not."""
    if got.dtype is not torch.float16 or not (got.isinf() & expected.isfinite()).any():
        return None
    said = (
        "infinite in float16 where the right value is not: a number beyond 65504 on the way, or one that is rounded "
        "to 0 and divided by. Compute in float32, and convert the result"
    )
    return Reason(kind="overflow", words=said)


def has_digits_of_float32(got: Tensor, expected: Tensor) -> bool:
    """Whether each number is right to a float32's rounding, and some are off by a good part of it."""
    if got.dtype not in WIDE or not (got.isfinite().all() and expected.all()):
        return False
    eps, off = torch.finfo(torch.float32).eps, ((got - expected) / expected).abs()
    return bool(off.max() < 32 * eps and off.max() > eps / 32)


def narrow(got: Tensor, expected: Tensor) -> Reason | None:
    """Say whether a result has only the digits of a lower precision, unlike the right one."""
    name = narrow_type_of(got)
    if name is None or narrow_type_of(expected) == name:
        return None
    far = min(_FAR, _UNITS * torch.finfo(getattr(torch, name)).eps)
    if _largest(got - expected) > far * _largest(expected):
        return None
    return Reason(kind="narrow", words=made_of(name), evidence={"dtype": name})


def made_of(name: str) -> str:
    """Return what is said of numbers that a narrow type has."""
    return f"every number of it is a {name}: it is summed, computed or kept in {name} on the way"


def narrow_type_of(tensor: Tensor) -> str | None:
    """Return the narrowest type that has all numbers of a tensor, of those that are narrower than its own."""
    if not tensor.is_floating_point() or not tensor.isfinite().all() or torch.unique(tensor).numel() < _FEW:
        return None
    held = (dtype for dtype in _NARROW if torch.finfo(tensor.dtype).eps < torch.finfo(dtype).eps)
    return next((_name(dtype) for dtype in held if _is_of(tensor, dtype)), None)


def _is_of(tensor: Tensor, dtype: torch.dtype) -> bool:
    return torch.equal(tensor.to(dtype).to(tensor.dtype), tensor)


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().nan_to_num(posinf=0.0).max())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
