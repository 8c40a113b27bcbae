r"""`torch.library.opcheck` reports no problem.

It tests the registration: the schema, fake tensors, the autograd key, and AOT dispatch with dynamic shapes. It does not
test whether gradients are right; the laws of functions do.

Why it matters: torch ships this checker, and reviewers ask for it.

What breaks it: the same mistakes as for the laws `schema`, `kernels` and `fake_kernel`.

Remedy: read its message; `python -c "import torch; torch.library.opcheck(...)"` shows the full message.
"""

from __future__ import annotations

from typing import Any

import torch

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, TrialOf, broken, not_applicable, shown
from gradspec.laws.operator.support._call import Call
from gradspec.spec import Case, OperatorSpec


def _check(trial: TrialOf[OperatorSpec, Case]) -> Finding:
    call = Call.of(trial).on_leaves()
    if not call.tensors():
        return not_applicable("the call has no tensor")
    torch._dynamo.reset()
    found: dict[str, Any] = torch.library.opcheck(call.overload, call.args, call.kwargs, raise_exception=False)
    failed = {test: said for test, said in found.items() if said != "SUCCESS"}
    answers = {test: "success" if said == "SUCCESS" else shown(said) for test, said in found.items()}
    if not failed:
        return Finding(status=HOLDS.status, details={"opcheck": answers})
    test, error = next(iter(failed.items()))
    return broken(
        f"opcheck: {test} says {shown(error)}",
        got=f"{len(failed)} of {len(found)} tests failed: {', '.join(failed)}",
        details={"opcheck": answers},
    )


OPCHECK = Law(
    name="opcheck",
    family="operators",
    scope=Scope.COMPILE,
    statement=r"\operatorname{opcheck}(F) = \text{success}",
    check=_check,
    doc=__doc__ or "",
    kinds=("operator",),
    cost="compile",
)
