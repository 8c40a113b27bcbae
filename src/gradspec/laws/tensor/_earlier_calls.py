r"""A call gives the same value and gradient, whatever was called before it, and before its backward pass.

It is called after other cases, and again with other numbers in the same memory, as after the step of an optimiser.

Why it matters: a model calls a function with one setting after another; training, evaluation and a second model share
one process; and an optimiser writes to the memory of the weights.

What breaks it: a cache whose key leaves out an argument (a kernel by its size and not by its width), or that goes by
`data_ptr()`; a table or a buffer that the first call sizes, a default that an earlier call has changed; a range, a
shape or a flag that forward keeps on the class for backward. Each case is right by itself.

Remedy: put every argument that decides into the key of the cache, a tensor with its `_version`, or cache nothing; keep
what backward needs on ctx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

import torch
from torch import Tensor

from gradspec._process_state import preserved_process_state
from gradspec.law import HOLDS, Finding, Law, Reason, Trial, not_applicable
from gradspec.laws.tensor._interleaved import SHARED
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare, compare_all, is_one
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import double
from gradspec.laws.tensor.support._limits import gradient_limits, value_limits
from gradspec.laws.tensor.support._reference import is_stand_in, on_spec_side, reference

#: To which part two numbers are one that is rounded in other dtypes.
_SAME = 2**-7
#: How many of the other cases are called before; the next ones, and then those from the first.
EARLIER = 8

#: The cause: with nothing called before, the same call is right, and now it is wrong in the same way again.
KEPT = Reason(
    kind="kept state",
    words="a cache or a table kept between calls: its key leaves out an argument, or an earlier call decides its size",
)

#: That of a call which is right for the same numbers in other memory.
BY_ADDRESS = Reason(
    kind="kept state",
    words="right for the same numbers in other memory: what is made of a tensor is kept by its address or its object, "
    "and an optimiser writes new numbers there",
)


def _check(trial: Trial) -> Finding:
    if trial.spec.effects.writes:
        return not_applicable("the calls share state by promise, and the law state_transition follows it")
    called = [name for other in islice(trial.others(), EARLIER) if (name := _called(other))]
    if not called:
        return _in_the_same_memory(trial, Inputs.of(trial))
    # An audit compares the function with itself: what came before both decides nothing, what comes in between does.
    finding = HOLDS if is_stand_in(trial.spec.primal) else _compared(trial, Inputs.of(trial))
    if finding is HOLDS:
        finding = _waiting(trial, Inputs.of(trial))
    if finding is HOLDS:
        return _in_the_same_memory(trial, Inputs.of(trial))
    return replace(finding, details={**finding.details, "called before": ", ".join(called)})


def _compared(trial: Trial, inputs: Inputs) -> Finding:
    expected = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    got = outputs(trial.spec.function(*inputs.args()))
    limits = value_limits(trial, inputs, dict(enumerate(got)))
    for k, (mine, right) in enumerate(zip(got, expected, strict=True)):
        what = f"{'value' if len(got) == 1 else f'output {k}'} after other calls"
        if (finding := compare(trial, what, mine, right, limits=limits.get(k))) is not HOLDS:
            again = outputs(trial.spec.function(*inputs.args()))[k]
            return finding.because(KEPT) if is_one({"": again}, {"": mine}, but={"": right}) else finding
    if not inputs.wrt:
        return HOLDS
    v = like(got, trial.seed)
    expected_gradients, got_gradients = (vjp(f, inputs, v) for f in (reference(trial.spec), trial.spec.function))
    bounds = gradient_limits(trial, inputs, v, got_gradients)
    what = "gradient after other calls"
    finding = compare_all(trial, what, got_gradients, expected_gradients, limits=bounds)
    if finding is HOLDS:
        return HOLDS
    again = vjp(trial.spec.function, inputs, v)
    return finding.because(KEPT) if is_one(again, got_gradients, but=expected_gradients) else finding


def _waiting(trial: Trial, inputs: Inputs) -> Finding:
    """Compare the gradient of a call whose backward pass waits while the other cases are called."""
    if not inputs.wrt:
        return HOLDS
    v = like(outputs(trial.spec.function(*inputs.args())), trial.seed)
    right = vjp(reference(trial.spec), inputs, v)
    others = [other for other in islice(trial.others(), EARLIER) if not _is_nearly(inputs, other)]
    if not others:
        return HOLDS
    what, got = "gradient, other calls before backward,", _waited(trial, inputs, v, others)
    finding = compare_all(trial, what, got, right, limits=gradient_limits(trial, inputs, v, got))
    if finding is HOLDS or _is_so_alone(trial, got, vjp(trial.spec.function, inputs, v)):
        return HOLDS
    # As many calls of the same case: what counts calls is as wrong after them.
    alike = quietly(lambda: _waited(trial, inputs, v, [trial for _ in others])) or {}
    return finding.because(SHARED) if is_one(alike, right, but=got) else finding


def _in_the_same_memory(trial: Trial, inputs: Inputs) -> Finding:
    """Compare a call whose arguments are written to, after a step of training, with one of the same numbers elsewhere.

    Args:
        trial: the call.
        inputs: its arguments.
    """
    if not inputs.wrt:
        return not_applicable("no other case can be called before, and no argument is trained")
    elsewhere = inputs.redrawn(trial.seed + 1)
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    v = like(y, trial.seed)
    gradients(y, leaves, v)
    if not _written(leaves, elsewhere.tensors()):
        return not_applicable("an argument is of memory that no step of an optimiser writes to")
    right = vjp(reference(trial.spec), elsewhere, v)
    got = gradients(outputs(trial.spec.function(*inputs.args(leaves))), leaves, v)
    limits = gradient_limits(trial, elsewhere, v, got)
    what = "gradient, with other numbers in the same memory,"
    finding = compare_all(trial, what, got, right, limits=limits)
    if finding is HOLDS or _is_so_alone(trial, got, afresh := vjp(trial.spec.function, elsewhere, v)):
        return HOLDS
    return finding.because(BY_ADDRESS) if is_one(afresh, right, but=got) else finding


def _is_nearly(inputs: Inputs, trial: Trial) -> bool:
    """Whether another call has the same numbers, in another dtype maybe: all that it may leave differs by rounding."""
    other: Inputs | None = quietly(lambda: Inputs.of(trial))
    if other is None or other.wrt != inputs.wrt:
        return False
    pairs = [(double(a), double(b)) for a, b in zip(inputs.tensors(), other.tensors(), strict=True)]
    return all((a.shape, a.dtype) == (b.shape, b.dtype) and torch.allclose(a, b, rtol=_SAME, atol=0) for a, b in pairs)


def _is_so_alone(trial: Trial, got: Mapping[str, Tensor | None], alone: Mapping[str, Tensor | None]) -> bool:
    """Whether the gradient is the same where nothing comes in between: it is then for other laws to judge."""
    return compare_all(trial, "gradient", got, alone) is HOLDS


def _written(leaves: Mapping[str, Tensor], others: Sequence[Tensor]) -> bool:
    """Write other numbers to the leaves, as an optimiser does; not where several elements share memory."""
    with torch.no_grad():
        for leaf, other in zip(leaves.values(), others, strict=True):
            if any(stride == 0 and size > 1 for stride, size in zip(leaf.stride(), leaf.shape, strict=True)):
                return False
            leaf.copy_(other)
    return True


def _waited(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...], others: list[Trial]) -> dict[str, Tensor | None]:
    """Return the gradient of a call whose backward pass waits while others are called."""
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    with preserved_process_state(trial.profile.device, trial.seed):  # backward may draw, as if nothing had in between
        for other in others:
            _called(other)
    return gradients(y, leaves, v)


def _called(other: Trial) -> str:
    """Call another case; return its name, or nothing where the call is refused: its own laws say so."""
    try:
        other.spec.function(*Inputs.of(other).args())
    except Exception:
        return ""
    return other.case.name


EARLIER_CALLS = Law(
    name="earlier_calls",
    family="protocol",
    statement=r"F(x),\, B(v) \text{ after } F(x_1), F(x_2), \ldots = p(x),\, Ds(x)^{\top} v",
    check=_check,
    doc=__doc__ or "",
    cost="process",
    alone=True,
    requires=("primal", "vjp"),
)
