"""What is drawn of a function: a call, which of its arguments are differentiated, and through which transforms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st

from fuzz.makers import MAKERS, Draw
from fuzz.tensors import COMPLEX, Drawn
from fuzz.transforms import COMPOSITIONS, declared_refusal, limit, sizes
from gradspec.laws.tensor.support._call import fresh
from gradspec.spec import FunctionSpec

#: How many numbers a step may return.
MOST = 3000


@dataclass(frozen=True)
class Example:
    """One call under one composition of transforms; `repr` is Python that makes it again."""

    spec: str
    values: Mapping[str, Any]
    #: What is differentiated.
    active: tuple[str, ...]
    #: What requires grad beside, and is not asked about.
    flagged: tuple[str, ...]
    #: The innermost transform first.
    transforms: tuple[str, ...]

    def built(self, widened: bool = False) -> dict[str, Any]:
        """Return the arguments; widened, the same numbers in double precision."""
        found = {name: v.build(widened=widened) if isinstance(v, Drawn) else v for name, v in self.values.items()}
        for name in (*self.active, *self.flagged):
            found[name] = fresh(found[name]).requires_grad_()
        return found

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of what is differentiated, and so of every result."""
        dtype: torch.dtype = getattr(torch, self.values[self.active[0]].dtype)
        return dtype

    @property
    def terms(self) -> int:
        """How many numbers go into one number of a result, at the most: all of the tensors, in each step."""
        tensors = [v.shape for v in self.values.values() if isinstance(v, Drawn)]
        return (1 + len(self.transforms)) * max(math.prod(shape) for shape in tensors)


@st.composite
def examples(draw: Any, spec: FunctionSpec) -> Example:
    """Draw an example of a function."""
    call = MAKERS[spec.name](Draw(draw))
    names = [name for name in spec.wrt if isinstance(call.values[name], Drawn)]
    active = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    left = [name for name in names if name not in active]
    flagged = draw(st.lists(st.sampled_from(left), unique=True)) if left else []
    inputs = sum(math.prod(call.values[name].shape) for name in active)
    is_complex = call.values[active[0]].dtype in COMPLEX
    fitting = [
        transforms
        for transforms in COMPOSITIONS
        if max(sizes(transforms, inputs, call.outputs)) <= MOST
        and not limit(spec.name, transforms)
        # torch has no Jacobian of complex numbers.
        and not (is_complex and {"jacfwd", "jacrev"} & set(transforms))
    ]
    if draw(st.integers(0, 7)) < 7:  # of what a spec refuses a few, for one that refuses most
        fitting = [transforms for transforms in fitting if not declared_refusal(spec, transforms)]
    transforms = draw(st.sampled_from(fitting))
    return Example(spec.name, call.values, tuple(active), tuple(flagged), transforms)
