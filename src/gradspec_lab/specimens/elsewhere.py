"""Operators that work in the process that has set them up, and not where an exported program is loaded."""

from functools import partial

import torch

from gradspec.spec import Case, OperatorSpec
from gradspec_lab.specimens.diseased import Disease, Specimens
from gradspec_lab.specimens.operators import SPACE, _contiguous, scaled
from gradspec_lab.specimens.registrations import matrices

DISEASED = Specimens()
#: The memory that a kernel works in, which the first case allots.
WORKSPACE = []


def sick(spec, **caught_by):
    DISEASED[spec.name] = Disease(spec=spec, caught_by=caught_by)


def _matrix(make):
    yield Case(name="matrix", args=(make(4, 3), 2.5))


def _allotting(make):
    WORKSPACE.append(torch.empty(64))
    yield from _matrix(make)


def _in_the_workspace(x, factor):
    if not WORKSPACE:
        raise RuntimeError("no workspace: call allot() first")
    return _contiguous(x, factor)


sick(
    scaled("works_in_what_is_allotted_here", _in_the_workspace, cases=_allotting),
    exported_operator=r"the program in a new process .* raised RuntimeError: no workspace",
)


_LIBRARY = torch.library.Library(SPACE, "FRAGMENT")
_LIBRARY.define("gradient_registered_in_a_setup(Tensor x, float factor) -> Tensor")
_LIBRARY.impl(
    "gradient_registered_in_a_setup", lambda x, factor: _contiguous(x.detach(), factor), "CompositeExplicitAutograd"
)
_LIBRARY.impl("gradient_registered_in_a_setup", torch.library.fallthrough_kernel, "Autograd")
REGISTERED = []


def _set_up(make):
    if not REGISTERED:
        _LIBRARY.impl("gradient_registered_in_a_setup", _contiguous, "AutogradCPU")
        REGISTERED.append(True)
    yield from _matrix(make)


sick(
    OperatorSpec(
        name="gradient_registered_in_a_setup",
        operator=f"{SPACE}::gradient_registered_in_a_setup",
        primal=lambda x, factor: factor * x,
        wrt=("x",),
        cases=_set_up,
    ),
    exported_operator=r"the program has no gradient in a new process",
)

# As one in C++, whose library no module of the spec loads: that of `primal` is torch's, and that of `cases` Python's.
_LIBRARY.define("registered_where_nobody_looks(Tensor input) -> Tensor")
_LIBRARY.impl(
    "registered_where_nobody_looks", torch.no_grad()(torch.nn.functional.tanhshrink), "CompositeExplicitAutograd"
)
sick(
    OperatorSpec(
        name="registered_where_nobody_looks",
        operator=f"{SPACE}::registered_where_nobody_looks",
        primal=torch.nn.functional.tanhshrink,
        wrt=(),
        cases=partial(matrices),
    ),
    exported_operator=r"the new process raised LookupError: .* is not registered by importing",
)
