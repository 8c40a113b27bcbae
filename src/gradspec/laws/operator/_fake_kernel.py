r"""A fake kernel agrees with the real one over a sweep of sizes and layouts, for outputs and gradients.

The sweep starts from the case itself. It replaces each size by 0, 1, 2 and its neighbours, in all tensors alike, and
takes transposed, expanded and channels-last tensors, and tensors that begin after the start of their memory. The law
compares shape, dtype, strides, storage offset, device and whether a gradient is required. It leaves out calls that the
real kernel refuses.

Why it matters: the compiler allocates and indexes memory as the fake kernel says. A wrong stride is a wrong result
or a crash, far from its cause.

What breaks it: `torch.empty_like` for a kernel that returns contiguous memory, a size written as a number, a branch on
a value, `item()`.

Remedy: let the fake kernel make its output with the same calls as the real one: `x.new_empty(shape)` for contiguous
memory, `torch.empty_like(x)` if the kernel keeps the strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._pytree import tree_leaves

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, Reason, TrialOf, broken, not_applicable, shown
from gradspec.laws.operator.support._call import Call
from gradspec.laws.operator.support._sweep import variants
from gradspec.laws.tensor.support._call import gradients
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._memory import telling_strides
from gradspec.spec import Case, OperatorSpec


def _check(trial: TrialOf[OperatorSpec, Case]) -> Finding:
    call = Call.of(trial)
    if not call.tensors():
        return not_applicable("the call has no tensor")
    for way, variant in variants(call):
        if (finding := _judged(way, variant)) is not HOLDS:
            return finding
    return _dynamic(call)


def _judged(way: str, call: Call) -> Finding:
    """Compare what is computed with what is said, of one call."""
    try:
        if any(t.is_cuda for t in call.tensors().values()):  # there a failed assertion ends all work on the device
            call.on_leaves().mapped(lambda v: v.detach().cpu() if isinstance(v, Tensor) else v).run()
        real = dict(_kinds(call.on_leaves()))
    except Exception:
        return HOLDS  # not a call that the operator takes
    mode = FakeTensorMode()
    fakes = call.on_leaves().mapped(lambda v: mode.from_tensor(v) if isinstance(v, Tensor) else v)
    with mode:
        try:
            fake = dict(_kinds(fakes))
        except DataDependentOutputException as error:
            return broken(
                f"{way}, on fake tensors the operator asks for a value: {shown(error)}",
                rank=Rank.REFUSED,
                reason=Reason(
                    kind="reads data",
                    words="the fake kernel or backward reads data: item(), a branch on a tensor, nonzero()",
                ),
            )
        except Exception as error:
            return broken(f"{way}, on fake tensors it raises {shown(error)}", rank=Rank.REFUSED)
    for what, expected in real.items():
        for trait, right in expected.items():
            if (got := fake.get(what, {}).get(trait)) != right:
                return broken(
                    f"{way}, {what} has other {trait} on fake tensors than on real ones",
                    argument=what,
                    got=str(got),
                    expected=str(right),
                    rank=Rank.WRONG,
                    reason=Reason(kind="other fake", words="the fake kernel says otherwise than the real one does"),
                )
    return HOLDS


def _kinds(call: Call) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is known of each output and gradient without its values."""
    y = [t for t in tree_leaves(call.run()) if isinstance(t, Tensor)]
    for place, t in enumerate(y):
        yield f"output {place}", _kind(t) | {"requires_grad": t.requires_grad}
    ones = tuple(torch.ones_like(t, memory_format=torch.contiguous_format) for t in y)
    for name, gradient in gradients(tuple(y), call.leaves, ones, copied=False).items() if call.leaves else ():
        yield f"the gradient of {name}", {"kind": "None"} if gradient is None else _kind(gradient)


def _kind(t: Tensor) -> dict[str, Any]:
    return {
        "shape": list(map(int, t.shape)),
        "dtype": describe(t).partition("[")[0],
        "strides": telling_strides(t),
        "storage offset": int(t.storage_offset()) if t.numel() else 0,
        "device": str(t.device),
    }


def _dynamic(call: Call) -> Finding:
    """Judge whether a fake kernel keeps a size that may change: what it fixes is compiled again for each size."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    environment = ShapeEnv()
    mode, count = FakeTensorMode(shape_env=environment), iter(range(10**6))

    def symbolic(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        sizes = [DimDynamic.DYNAMIC if n > 1 else DimDynamic.STATIC for n in value.shape]
        context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
        return mode.from_tensor(value, source=ConstantSource(f"t{next(count)}"), symbolic_context=context)

    fakes = call.mapped(symbolic)
    with mode, suppress(DataDependentOutputException):
        try:
            fakes.run()
        except DataDependentOutputException:
            raise
        except Exception as error:
            said = f"with sizes that may change, on fake tensors it raises {shown(error)}"
            why = Reason(
                kind="fixed size",
                words="a size is made a number: int(x.shape[0]), range over it, a reshape to constants",
            )
            return broken(said, rank=Rank.REFUSED, reason=why if _fixed(environment) else None)
    if fixed := _fixed(environment):
        return broken(
            f"the fake kernel fixes {len(fixed)} of the sizes that may change: a compiler makes a new program for each",
            rank=Rank.WASTE,
            reason=Reason(
                kind="compared size", words="a size is made a number: int(x.shape[0]), a comparison with a constant"
            ),
        )
    return HOLDS


def _fixed(environment: Any) -> list[Any]:
    """Return the sizes that may change and that a call has made a number."""
    return [symbol for symbol, value in environment.replacements.items() if getattr(value, "is_Integer", False)]


FAKE_KERNEL = Law(
    name="fake_kernel",
    family="operators",
    scope=Scope.COMPILE,
    statement=r"\operatorname{type}(\operatorname{fake}(F)(x)) = \operatorname{type}(F(x))\ \text{for all sizes}",
    check=_check,
    doc=__doc__ or "",
    kinds=("operator",),
    capability="fake",
)
