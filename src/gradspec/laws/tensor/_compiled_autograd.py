r"""The backward pass under compiled autograd, which traces it as one program when it runs, gives the declared gradient.

Forward runs in eager mode here. A graph break is not a failure: the law only compares the gradient.

Why it matters: `torch._dynamo.config.compiled_autograd = True` compiles the whole backward pass of a model, hooks and
communication included. The backward of a Function is traced with a replacement for its ctx.

What breaks it: state that is kept outside ctx, by `id(ctx)` or in a dictionary with ctx as keys; a backward that
checks the type of ctx or whether it is compiled.

Remedy: keep what backward needs on ctx: tensors by `ctx.save_for_backward`, plain values as attributes.
"""

from __future__ import annotations

from typing import Any

import torch

from gradspec._scope import Scope
from gradspec.law import Finding, Law, Status, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._reference import is_of_module
from gradspec.laws.tensor.support._transform import expected_gradients, frozen, judge, silenced, tracing_backend

#: Why a module is not judged whose backward, as that of an adjoint, asks for the gradients of its own parameters.
RUNS_AGAIN = "its backward runs the module again, which has other parameters than this call once it is traced"


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    leaves = inputs.leaves()
    y = outputs(frozen(trial.spec.function, inputs)(*leaves.values()))
    v = like(y, trial.seed)
    right = expected_gradients(trial, inputs, v)
    torch._dynamo.reset()

    def compiled(graph: Any) -> Any:
        return torch.compile(graph, backend=tracing_backend(trial))

    with silenced("torch._dynamo"), torch._dynamo.compiled_autograd._enable(compiled):
        got = gradients(y, leaves, v)
    if is_of_module(trial.spec) and any(
        got[name] is None and g is not None for name, g in zip(got, right, strict=True)
    ):
        return Finding(status=Status.NOT_MEASURED, message=RUNS_AGAIN)
    return judge(trial, inputs, "compiled autograd", tuple(got.values()), right, of=y)


COMPILED_AUTOGRAD = Law(
    name="compiled_autograd",
    family="transforms",
    scope=Scope.COMPILE,
    statement=r"\operatorname{compile}(B)(v) = Ds(x)^{\top} v",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    capability="compiled_autograd",
)
