"""Every Function of a module, or operator of a namespace, each with a call that its signature suggests."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import islice, product
from types import ModuleType
from typing import Any

import torch
from torch.autograd import Function

from gradspec._audit._apart import apart
from gradspec._audit._case_syntax import read_case
from gradspec._audit._look import look
from gradspec._audit._subject import subject_of
from gradspec.law import Finding
from gradspec.profile import Profile
from gradspec.spec._schema import overload_of, signature_of
from gradspec.spec._sheet import forward_signature

#: What an argument is by its name, where the annotation does not say it: the first that fits, tried in order. Integers
#: come first, since only they may name the first argument: any other first argument is what is differentiated.
_BY_NAME: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("target", "targets", "label", "labels", "index", "indices", "idx", "ids"),
        ("randint(0, 3, (4,))", "randint(0, 3, (4, 3))"),
    ),
    (("dim", "axis"), ("-1", "0")),
    (("training", "inplace", "bias_flag", "reduce", "keepdim"), ("False", "True")),
    (("mask",), ("ones(4, 3, dtype=bool)", "ones(4, 3)")),
    (("weight", "w"), ("randn(3, 3)", "randn(4, 3)", "randn(3)")),
    (("bias", "b"), ("randn(3)", "randn(4, 3)")),
    (("num", "n", "k", "size", "bits", "bit", "groups", "steps", "levels"), ("2",)),
    (
        ("alpha", "beta", "gamma", "lambda", "lambd", "lamda", "scale", "factor", "slope", "eps", "temperature", "tau"),
        ("0.5", "tensor(0.5)"),
    ),
    # Below the upper limit: between equal ones all is flat.
    (("min", "lo", "low", "lower"), ("-0.5", "tensor([-0.5])")),
    (
        ("p", "t", "k", "threshold", "coeff", "rate", "width", "bound", "max", "hi", "high", "upper", "limit", "clip"),
        ("0.5", "tensor([0.5])"),
    ),
)
_BY_ANNOTATION = {"Tensor": ("randn(4, 3)",), "float": ("0.5",), "int": ("2", "1"), "bool": ("False", "True")} | {
    "List[Tensor]": ("[randn(4, 3), randn(4, 3)]",),
    "Optional[Tensor]": ("randn(4, 3)", "randn(3)", "None"),
}
#: What else an argument may be.
_ANYTHING = ("randn(4, 3)", "0.5", "2", "randn(3)", "randn(3, 3)")
#: What else a tensor of rows may be: a sequence of them, an image.
_OTHER_SHAPES = ("2, 4, 3", "2, 3, 4, 5")
#: How many calls are tried before a Function is given up.
_TRIED = 200


def functions_of(module: ModuleType) -> dict[str, type[Function]]:
    """Return the Functions that a module defines, in their order."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Function) and value.__module__ == module.__name__
        if value.__name__ == name and value.forward is not Function.forward
    }


def operators_of(namespace: str) -> dict[str, Any]:
    """Return the operators of torch.library in a namespace, "mylib::", by name; of several overloads each."""
    names = sorted(n for n in torch._C._dispatch_get_all_op_names() if n.startswith(namespace))
    return {name: overload_of(name) for name in names}


def suggested_case(function: Any, profile: Profile, seed: int) -> str:
    """Return the first call that the signature of a Function or operator suggests and that works; empty if none does.

    It calls the function, in a child process: its annotations, names and defaults are guesses.
    """
    try:
        is_operator = isinstance(function, torch._ops.OpOverload)
        found = signature_of(function._schema, annotated=True) if is_operator else forward_signature(function)
        parameters = list(found.parameters.values())
    except (TypeError, ValueError):
        return ""
    text = apart(
        lambda: next(filter(lambda text: _works(function, text, profile, seed), _calls(parameters)), ""), profile, seed
    )
    return "" if isinstance(text, Finding) else text


def other_cases(function: Any, text: str, profile: Profile, seed: int) -> list[str]:
    """Return the calls of other numbers of dimensions that work: a guess may be a call that nobody makes."""
    others = [text.replace("(4, 3", f"({shape}") for shape in _OTHER_SHAPES if "(4, 3" in text]
    found = apart(lambda: [other for other in others if _works(function, other, profile, seed)], profile, seed)
    return [] if isinstance(found, Finding) else found


def _calls(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield calls, the likeliest first."""
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    guesses = [_guesses(parameter, place) for place, parameter in enumerate(needed)]
    if not guesses:
        return
    # By how far the guesses are from the first ones, so that no argument is held at a wrong one for long.
    ranked = sorted(product(*(range(len(g)) for g in guesses)), key=sum) if len(guesses) < 6 else [(0,) * len(guesses)]
    for places in islice(ranked, _TRIED):
        chosen = [guess[place] for guess, place in zip(guesses, places, strict=True)]
        yield f"({', '.join(chosen)}{',' if len(chosen) == 1 else ''})"


def _guesses(parameter: inspect.Parameter, place: int) -> tuple[str, ...]:
    annotation = parameter.annotation
    noted = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    words = parameter.name.lower().split("_")
    by_name = _BY_NAME if place else _BY_NAME[:1]
    named = next((guesses for names, guesses in by_name if any(name in words for name in names)), ())
    for kind, guesses in _BY_ANNOTATION.items():
        if kind in (noted, noted.rpartition(".")[2]):
            # An index is a tensor too, and one of integers.
            tensors = (*named, *guesses) if named and named is _BY_NAME[0][1] else guesses
            return tuple(dict.fromkeys((*tensors, *_ANYTHING) if kind == "Tensor" else guesses))
    may_be_none = any(word in str(annotation) for word in ("None", "Optional"))
    return tuple(dict.fromkeys((*named, *_ANYTHING, *(("None",) if may_be_none else ()))))


def _works(function: Any, text: str, profile: Profile, seed: int) -> bool:
    """Whether a call runs forward and backward, and a gradient reaches an argument."""
    try:
        measured = look(
            *subject_of(function, (read_case(text, seed=seed, device=profile.device),)), profile, seed
        ).measured
    except (TypeError, ValueError):
        return False
    # An operator may have no gradient, as one that writes to its arguments.
    return (bool(measured.wrt) or isinstance(function, torch._ops.OpOverload)) and not measured.raised
