r"""The function accepts its documented arguments by keyword, and so does the form that draws its noise.

If a spec documents no arguments, their names are those of the function, as far as Python can read them. A decorator of
`forward`, such as `torch.amp.custom_fwd` or `classmethod`, hides them from torch.

Why it matters: a call with keywords is how readable code calls it; older torch refused keywords in `apply`.

What breaks it: an `apply` that forwards only positional arguments, or an argument name that the page does not
have.

Remedy: give `apply` the documented argument names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch.autograd import Function

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._generators import given_noise, has_batch, without_noise
from gradspec.laws.tensor.support._reference import is_audited, on_spec_side
from gradspec.laws.tensor.support._replay import awake
from gradspec.spec._sheet import forward_signature


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    expected = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    function = trial.spec.function
    # An audit hands the arguments on to apply, whatever is around it.
    behind = trial.spec.autograd_function if is_audited(trial.spec) else None
    if not trial.spec.arguments and _hides_names(behind or getattr(awake(trial).spec.function, "__self__", None)):
        return not_applicable("a decorator of forward, as classmethod, hides the names of the arguments from torch")
    got = _called(function, inputs, "it", [] if trial.spec.arguments else _names_of(awake(trial).spec.function))
    if isinstance(got, Finding):
        return got
    for mine, theirs in zip(got, expected, strict=True):
        if (finding := compare(trial, "value of the keyword call", mine, theirs)) is not HOLDS:
            return finding
    noise = given_noise(trial)
    if noise is None or not has_batch(without_noise(trial)):
        return HOLDS
    drawn = _called(noise.drawing, without_noise(trial), "the form that draws", [])
    return drawn if isinstance(drawn, Finding) else HOLDS


def _called(function: Callable[..., Any], inputs: Inputs, form: str, own: list[str]) -> tuple[Any, ...] | Finding:
    """Call by the names of the spec; by the function's own, where it has others and they are given."""
    names = list(inputs.values)
    if own and not set(names) <= set(own):
        names = [*own[: len(names)], *names[len(own) :]]
    keywords = dict(zip(names, inputs.args(), strict=True))
    try:
        return outputs(function(**keywords))
    except TypeError as error:
        words = ", ".join(f"{name}=..." for name in keywords)
        return raised(error, f"called with {words} {form}")


def _hides_names(cls: Any) -> bool:
    """Whether torch, which reads the names of the code of `forward` behind the first, finds others than Python."""
    forward = getattr(cls, "forward", None) if isinstance(cls, type) and issubclass(cls, Function) else None
    if inspect.ismethod(forward):
        return True
    code = getattr(inspect.unwrap(forward), "__code__", None) if forward is not None else None
    return code is not None and getattr(forward, "__code__", code).co_varnames != code.co_varnames


def _names_of(function: Any) -> list[str]:
    """Return the names by which a function can be called, those of forward for `apply`; none where Python has none."""
    cls = getattr(function, "__self__", None)
    is_function = isinstance(cls, type) and issubclass(cls, Function) and function.__name__ == "apply"
    try:
        signature = forward_signature(cls) if is_function else inspect.signature(function)
    except (TypeError, ValueError):
        return []
    parameters = signature.parameters.values()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters] if all(p.kind in named for p in parameters) else []


KEYWORD_CALL = Law(
    name="keyword_call",
    family="protocol",
    statement=r"F(x{=}x, \dots) = F(x, \dots)",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    requires=("primal",),
)
