r"""Two calls that wait for their backward passes at the same time each keep their own value and gradient.

Why it matters: a network calls a function in many layers before the first backward pass; a Siamese one calls it twice.

What breaks it: a mask, a shape or a buffer kept on the class, in a closure or in a module; a workspace that each call
writes its output to.

Remedy: keep what backward needs with `ctx.save_for_backward`, or on ctx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from gradspec._one_line import listed
from gradspec.law import HOLDS, Finding, Law, Reason, Trial, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, fresh, gradients, like, outputs, resembling, vjp
from gradspec.laws.tensor.support._compare import compare_all, is_one
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._reference import moving_state, plain_call


def _check(trial: Trial) -> Finding:
    first = Inputs.of(trial)
    if not first.wrt:
        return not_applicable("no floating-point input in this case")
    if trial.spec.effects.writes:
        return not_applicable("the calls share state by promise, and the law state_transition follows it")
    given = tuple(first.values[name] for name in first.wrt)
    turned = tuple(t.detach().flatten().flip(0).reshape(t.shape) for t in given)
    if all(torch.equal(a, b) for a, b in zip(turned, given, strict=True)):
        turned = resembling(given, trial.seed + 1)
    second = Inputs({**first.values, **dict(zip(first.wrt, turned, strict=True))}, first.wrt)
    try:
        # Before two calls wait: in an audit the reference is the function, and its calls would come between them.
        cotangents = [like(outputs(trial.spec.primal(*inputs.args())), trial.seed) for inputs in (first, second)]
        plain, pairs = plain_call(trial.spec, first), zip((first, second), cotangents, strict=True)
        right = [vjp(plain, inputs, v) for inputs, v in pairs]
        if not _agree(vjp(trial.spec.function, second, cotangents[1]), right[1]):
            return not_applicable("the gradient is another one where the elements of the arguments are turned round")
        calls = [(inputs, inputs.leaves()) for inputs in (first, second)]
        # The buffers of a module are the same ones in both calls.
        moving = moving_state(trial.spec)
        kept = {name: fresh(value) for name, value in first.values.items() if name in moving}
        made = [outputs(trial.spec.function(*inputs.args({**leaves, **kept}))) for inputs, leaves in calls]
    except Exception:
        return not_applicable("other values of the arguments are refused")
    moved = [name for name, value in kept.items() if not torch.equal(value, first.values[name])]
    # Where the first call has moved what the second one begins with, that has another gradient.
    numbers = ("first",) if moved else ("first", "second")
    for number, (inputs, leaves), y, v, expected in zip(numbers, calls, made, cotangents, right, strict=False):
        what = f"gradient of the {number} of two pending calls"
        try:
            got = gradients(y, leaves, v)
            finding = compare_all(trial, what, got, expected)
        except RuntimeError as error:  # torch's, of a tensor that has been written to
            got, finding = {}, raised(error, f"the backward pass of the {number} of two pending calls")
        if finding is not HOLDS and moved:
            shared = {name: quietly(partial(_beside, trial, first, second, name, v)) for name in moved}
            read = [name for name, found in shared.items() if found is None or not _agree(found, expected)]
            apart = quietly(lambda: _beside(trial, first, second, "", v)) or {}  # noqa: B023  # called at once
            return finding.because(overwritten(read)) if read and is_one(apart, expected, but=got) else finding
        if finding is not HOLDS:
            # Two calls of the same arguments put the same there, and both are right.
            alike = quietly(lambda: _waiting(trial, inputs, v)) or []  # noqa: B023  # called at once
            is_shown = bool(alike) and all(is_one(g, expected, but=got) for g in alike)
            return finding.because(SHARED) if is_shown else finding
    return HOLDS


def _waiting(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...]) -> list[dict[str, Tensor | None]]:
    """Return the gradients of two calls of the same arguments that wait together."""
    calls = [inputs.leaves() for _ in range(2)]
    made = [outputs(trial.spec.function(*inputs.args(leaves))) for leaves in calls]
    return [gradients(y, leaves, v) for y, leaves in zip(made, calls, strict=True)]


def _beside(
    trial: Trial, first: Inputs, second: Inputs, shared: str, v: tuple[Tensor, ...]
) -> dict[str, Tensor | None]:
    """Return the gradients of a call beside which another one waits, with one buffer for both, or none."""
    kept, leaves = {name: fresh(value) for name, value in first.values.items() if name == shared}, first.leaves()
    y = outputs(trial.spec.function(*first.args({**leaves, **kept})))
    trial.spec.function(*second.args({**second.leaves(), **kept}))
    return gradients(y, leaves, v)


def _agree(got: Mapping[str, Tensor | None], expected: Mapping[str, Tensor | None]) -> bool:
    pairs = ((got[name], right) for name, right in expected.items())
    return all(a is b or (a is not None and b is not None and torch.allclose(a, b)) for a, b in pairs)


#: The cause: what is right beside the same call is wrong beside another one.
SHARED = Reason(
    kind="shared state",
    words="forward keeps something on the class, in a module or in a buffer, where the next call puts its own",
)


def overwritten(names: Sequence[str]) -> Reason:
    """Return the cause: with buffers of its own the second call leaves the first one right."""
    return Reason(
        kind="shared state",
        words=f"backward reads {listed(names)}, which the next call writes to: let it read a clone()",
    )


INTERLEAVED = Law(
    name="interleaved",
    family="protocol",
    statement=r"B_{F(x)} \text{ after } F(x'),\; B_{F(x')} \text{ after } B_{F(x)}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
