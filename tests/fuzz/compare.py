r"""Whether a function agrees with its reference by construction, both behind the same transforms.

The reference is computed in double precision from the same numbers, and the function in their own dtype, so that what
is compared with is nearly exact. An element may be off by

.. math::

    \gamma \max |r|, \qquad \gamma = (8 + n)\, \varepsilon,

where n is the number of terms that can go into a result and epsilon the rounding of the dtype (Higham, Accuracy and
Stability of Numerical Algorithms, 2002, section 3.1). Where terms cancel, a result is small and its error is not. Then,
and only then, three more things are measured of the reference: how large the result is at other points, where the terms
do not cancel; how far it moves if its inputs move by one rounding; and how far it is off in the dtype of the function.
The first takes the place of r; of the larger of the others an element may be off by four times as much.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import set_checkpoint_early_stop

from fuzz.examples import Example
from fuzz.tensors import Drawn, wide
from fuzz.transforms import composed, declared_refusal
from gradspec.laws.tensor.support._call import outputs
from gradspec.laws.tensor.support._reference import reference
from gradspec.spec import FunctionSpec

#: Where torch has no derivative of the reference, which is its own code: what it says, and where that is.
TORCH_REFUSES = {
    "select(): index 0 out of range for tensor of size [0]": "its Jacobian of no numbers, one around another",
    "which is output 0 of Exp, is at version 1": "its cross_entropy of an empty batch, forward over reverse",
}
#: How many times further off than ordinary torch.
TIMES = 4


class Answer:
    """What came of an example: tensors, or an error; and the arguments after it."""

    def __init__(self, function: Callable[..., Any], example: Example, values: dict[str, Any]) -> None:
        self.values = values
        self.error: Exception | None = None
        self.tensors: tuple[Tensor, ...] = ()

        def of_active(*xs: Tensor) -> tuple[Tensor, ...]:
            given = {**values, **dict(zip(example.active, xs, strict=True))}
            return outputs(function(*given.values()))

        try:
            with warnings.catch_warnings():
                # torch warns of its own: a jacobian by jit.script, a vmap without a batching rule.
                warnings.simplefilter("ignore")
                found = composed(of_active, example.transforms)(*(values[name] for name in example.active))
            self.tensors = tuple(tensor.detach() for tensor in found)
        except Exception as error:
            self.error = error


def of_reference(spec: FunctionSpec, example: Example, values: dict[str, Any]) -> Answer:
    """Return what the reference makes of an example."""
    # It would take the error by which torch ends a recomputation early for a fault of its own.
    with set_checkpoint_early_stop(False):
        return Answer(reference(spec), example, values)


def difference(spec: FunctionSpec, example: Example, counts: Counter[str] | None = None) -> str:
    """Return in which way the two differ; empty if they do not. `counts` gets how they agree."""
    counts = Counter() if counts is None else counts
    ours = Answer(spec.function, example, example.built())
    refused = declared_refusal(spec, example.transforms)
    if refused:
        counts["refused as declared"] += 1
        return "" if ours.error is not None else f"{refused} is refused by the spec, and nothing was raised"
    theirs = of_reference(spec, example, example.built(widened=True))
    if any(said in str(theirs.error) for said in TORCH_REFUSES):
        counts["torch has no derivative of the reference"] += 1
        return ""
    if (ours.error is None) != (theirs.error is None) or type(ours.error) is not type(theirs.error):
        return f"ours raised {ours.error!r}, the reference {theirs.error!r}"
    counts["both raise" if ours.error else "values"] += 1
    if len(ours.tensors) != len(theirs.tensors):
        return f"{len(ours.tensors)} results, and {len(theirs.tensors)} of the reference"
    for place, (y, r) in enumerate(zip(ours.tensors, theirs.tensors, strict=True)):
        if said := _apart(spec, example, place, y, r):
            return f"result {place}: {said}"
    return _state(spec, example, ours)


def _apart(spec: FunctionSpec, example: Example, place: int, y: Tensor, r: Tensor) -> str:
    if y.shape != r.shape:
        return f"its shape is {tuple(y.shape)}, and {tuple(r.shape)} of the reference"
    # torch widens what forward mode makes of a number without a dimension and a Python number: see test_limits.py.
    is_number = any(example.values[name].shape == () for name in example.active)
    if y.dtype != example.dtype and not is_number:
        return f"its dtype is {y.dtype}, and {example.dtype} of the arguments"
    if y.numel() == 0:
        return ""
    limits = torch.finfo(example.dtype)
    # What comes near the largest number of a half type may overflow on the way.
    judged = ~(r.abs() > limits.max / 64)
    off = torch.where(judged & (wide(y) != r), (wide(y) - r).abs(), torch.zeros_like(r.abs()))
    size, gamma = largest(r), (8 + example.terms) * limits.eps
    allowed = gamma * size + limits.smallest_normal
    if bool((off <= allowed).all()):
        return ""
    allowed = gamma * max(size, _elsewhere(spec, example, place)) + limits.smallest_normal
    allowed += TIMES * max(_rounded(spec, example, place, r), _moved(spec, example, place, r))
    if bool((off <= allowed).all()):
        return ""
    worst = int(torch.where(off.isnan(), torch.inf, off).argmax())
    got, expected = y.reshape(-1)[worst].item(), r.reshape(-1)[worst].item()
    return f"element {worst} of {y.numel()} is {got}, expected {expected} within {allowed:.3g}"


def _elsewhere(spec: FunctionSpec, example: Example, place: int) -> float:
    """Return how large a result of the reference is at other points, where no two rows are equal."""
    found = 0.0
    for start in (1000, 2000):
        values = {
            name: replace(v, seed=v.seed + start, layout="contiguous") if isinstance(v, Drawn) and v.low < 0 else v
            for name, v in example.values.items()
        }
        other = replace(example, values=values)
        there = of_reference(spec, other, other.built(widened=True))
        found = max(found, largest(there.tensors[place]) if there.error is None else 0.0)
    return found


def _rounded(spec: FunctionSpec, example: Example, place: int, r: Tensor) -> float:
    """Return how far off the reference is in the dtype of the function."""
    plain = of_reference(spec, example, example.built())
    return largest(wide(plain.tensors[place]) - r) if plain.error is None else 0.0


def _moved(spec: FunctionSpec, example: Example, place: int, r: Tensor) -> float:
    """Return how far the reference moves if each number of its arguments is rounded once more, up or down."""
    eps, found = torch.finfo(example.dtype).eps, 0.0
    for start in range(3):
        generator = torch.Generator().manual_seed(start)
        moved = {}
        for name, v in example.built(widened=True).items():
            if isinstance(v, Tensor) and (v.is_floating_point() or v.is_complex()):
                signs = torch.randint(0, 2, v.shape, generator=generator).double() * 2 - 1
                moved[name] = (v.detach() * (1 + eps * signs)).requires_grad_(v.requires_grad)
            else:
                moved[name] = v
        near = of_reference(spec, example, moved)
        found = max(found, largest(near.tensors[place] - r) if near.error is None else 0.0)
    return found


def largest(tensor: Tensor) -> float:
    """Return the largest of the finite absolute values."""
    size = tensor.abs()
    size = size[size.isfinite()]
    return float(size.max()) if size.numel() else 0.0


def _state(spec: FunctionSpec, example: Example, ours: Answer) -> str:
    """Compare what was written to with the state that the spec declares, where one backward pass has run."""
    if spec.state_after is None or ours.error is not None:
        return ""
    before = example.built(widened=True)
    constants = {name: v.detach() if isinstance(v, Tensor) else v for name, v in before.items()}
    has_moved = "autograd" in example.transforms
    after = spec.state_after(**constants) if has_moved else {name: constants[name] for name in spec.effects.writes}
    # What is one less the momentum is rounded in the dtype of the parameters.
    given = [getattr(torch, v.dtype) for v in example.values.values() if isinstance(v, Drawn)]
    eps = max(torch.finfo(dtype).eps for dtype in given if dtype.is_floating_point)
    for name, expected in after.items():
        got = ours.values[name]
        allowed = (8 + example.terms) * eps * max(1.0, largest(expected))
        if got.numel() and largest(wide(got.detach()) - expected) > allowed:
            return f"{name} is {got.tolist()} afterwards, expected {expected.tolist()} within {allowed:.3g}"
    return ""
