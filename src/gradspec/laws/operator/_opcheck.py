r"""`torch.library.opcheck` reports no problem.

It tests the registration: the schema, fake tensors, the autograd key, and AOT dispatch with dynamic shapes. It does not
test whether gradients are right; the laws of functions do.

Why it matters: torch ships this checker, and reviewers ask for it.

What breaks it: the same mistakes as for the laws `schema`, `kernels` and `fake_kernel`.

Remedy: read its message; `python -c "import torch; torch.library.opcheck(...)"` shows the full message.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, TrialOf, broken, not_applicable, shown
from gradspec.laws.operator.support._call import Call
from gradspec.laws.tensor.support._call import differentiable, fresh
from gradspec.spec import Case, OperatorSpec

_SUCCESS = "SUCCESS"
#: The test of `opcheck` that compares gradients.
_COMPARES = "test_aot_dispatch_dynamic"


def _check(trial: TrialOf[OperatorSpec, Case]) -> Finding:
    call = Call.of(trial).on_leaves()
    if not call.tensors():
        return not_applicable("the call has no tensor")
    torch._dynamo.reset()
    found: dict[str, Any] = torch.library.opcheck(call.overload, call.args, call.kwargs, raise_exception=False)
    if found.get(_COMPARES, _SUCCESS) != _SUCCESS and _is_whole_before_floating(call):
        found[_COMPARES] = _compared(call)
    failed = {test: said for test, said in found.items() if said != _SUCCESS}
    answers = {test: "success" if said == _SUCCESS else shown(said) for test, said in found.items()}
    if not failed:
        return Finding(status=HOLDS.status, details={"opcheck": answers})
    test, error = next(iter(failed.items()))
    return broken(
        f"opcheck: {test} says {shown(error)}",
        got=f"{len(failed)} of {len(found)} tests failed: {', '.join(failed)}",
        details={"opcheck": answers},
    )


def _is_whole_before_floating(call: Call) -> bool:
    """Whether whole numbers come before floating ones in what is returned: torch's test adds to them, and raises."""
    outputs = [t for t in tree_leaves(call.mapped(fresh).run()) if isinstance(t, Tensor)]
    kinds = [differentiable(t) for t in outputs]
    return kinds != sorted(kinds, reverse=True)


def _compared(call: Call) -> Any:
    """Return what torch's test says with the floating outputs first."""

    def floating_first(*args: Any, **kwargs: Any) -> list[Any]:
        tensors = [t for t in tree_leaves(call.overload(*args, **kwargs)) if isinstance(t, Tensor)]
        return sorted(tensors, key=lambda t: not differentiable(t))

    optests = importlib.import_module("torch.testing._internal.optests.generate_tests")  # seconds, as `opcheck` itself
    try:
        optests.safe_aot_autograd_check(floating_first, call.args, call.kwargs, dynamic=True)
    except Exception as error:
        return error
    return _SUCCESS


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
