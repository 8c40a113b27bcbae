"""Sound functions about which torch, or a numerical derivative, does what looks like a mistake of theirs."""

from collections.abc import Iterator

import torch
from torch.autograd import Function

from gradspec.spec import Case, FunctionSpec, Make, Supports


def _cases(make: Make) -> Iterator[Case]:
    yield Case(name="vector", args=(make(4),))
    yield Case(name="transposed", args=(make(2, 3).T,))


class TanhInPlace(Function):
    """tanh(x), written over x, in the old form: what torch makes of such a form is no fault of it."""

    @staticmethod
    def forward(ctx, x):
        x.tanh_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return (1 - y * y) * y_bar


#: torch's own: beside a tangent its output, the tangent and the graph of that hold each other until the level ends.
RECTIFIED = FunctionSpec(
    name="rectified",
    function=lambda x: x.relu(),
    primal=lambda x: x.clamp(min=0),
    surrogate=lambda x: x.clamp(min=0),
    wrt=("x",),
    cases=_cases,
    supports=Supports.all(),
)
TANH_IN_PLACE = FunctionSpec(
    name="tanh_in_place",
    function=lambda x: TanhInPlace.apply(x * 1),
    primal=lambda x: x.tanh(),
    surrogate=lambda x: x.tanh(),
    wrt=("x",),
    cases=_cases,
    supports=Supports.eager(double_backward=True),
)
#: A length of 1e-4 beside lengths of 1: a step that is right for these jumps over all that it does there.
LENGTHS = FunctionSpec(
    name="lengths",
    function=lambda x: x.norm(dim=-1),
    primal=lambda x: x.norm(dim=-1),
    surrogate=lambda x: x.norm(dim=-1),
    wrt=("x",),
    cases=lambda make: iter([Case(name="a short row", args=(torch.cat([make(2, 3), 1e-4 * make(1, 3)]),))]),
    supports=Supports.all(),
)
HONEST = (RECTIFIED, TANH_IN_PLACE, LENGTHS)
