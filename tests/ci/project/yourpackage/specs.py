"""What the functions of this package promise."""

from gradspec import Case, FunctionSpec
from gradspec.spec import Supports
from yourpackage.ops import ClipSTE, RoundSTE


def cases(make):
    yield Case(name="matrix", args=(make(3, 4),))
    yield Case(name="wide", args=(make(5, low=-3, high=3),))


ROUND = FunctionSpec(
    name="round_ste",
    function=RoundSTE.apply,
    primal=lambda x: x.round(),
    surrogate=lambda x: x,
    wrt=("x",),
    cases=cases,
    supports=Supports.eager(),
)
CLIP = FunctionSpec(
    name="clip_ste",
    function=ClipSTE.apply,
    primal=lambda x: x.clamp(-1, 1),
    surrogate=lambda x: x.clamp(-1, 1),
    wrt=("x",),
    cases=cases,
    supports=Supports.eager(),
)
