"""Random calls that show every gradient: one that is zero just where a call was drawn is drawn again.

A clip that no number reaches, a branch that no row takes: a wrong gradient would be as zero as the right one there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._apart import apart
from gradspec._audit._case_syntax import call_of, read_case, text_of
from gradspec._audit._subject import subject_of
from gradspec.profile import Profile

#: How many other draws are tried.
DRAWS = 8
_RANDOM = ("randn", "rand", "randint")


def redrawn(function: Callable[..., Any], cases: Sequence[Any], profile: Profile, seed: int) -> tuple[list[Any], str]:
    """Return the calls, and draw those with a zero gradient by other seeds, if these show it; and what to say.

    Args:
        function: what is audited.
        cases: its calls; those that are written as text without a seed are drawn.
        profile: how hard, for the limit of time.
        seed: of what is drawn.
    """
    drawn = [k for k, case in enumerate(cases) if isinstance(case, str) and with_seeds(case, 1) != case]
    if not drawn or len(drawn) < len(cases):
        return list(cases), ""
    found = apart(lambda: _revealing(function, cases, seed, profile.device), profile, seed)
    if not isinstance(found, tuple):  # a call ends the process, or hangs: the audit says so
        return list(cases), ""
    place, text = found
    said = f"In {cases[place].strip()}, a gradient is zero by chance: {text} is asked in its place, where it is not."
    return [text if k == place else case for k, case in enumerate(cases)], said


def with_seeds(text: str, number: int) -> str:
    """Return a call whose random tensors name a seed, if they name none.

    Example:
        >>> with_seeds("(2 * randn(3), rand(2, seed=4), 0.5)", 1)
        '(2 * randn(3, seed=1), rand(2, seed=4), 0.5)'
    """
    try:
        call = call_of(text)
    except Exception:
        return text
    recipes = [node for node in ast.walk(call) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    drawn = [node for node in recipes if node.func.id in _RANDOM and all(k.arg != "seed" for k in node.keywords)]  # type: ignore[attr-defined]  # a name
    for count, node in enumerate(drawn):
        node.keywords.append(ast.keyword(arg="seed", value=ast.Constant(number + count)))
    return text_of(call) if drawn else text


def _revealing(function: Callable[..., Any], cases: Sequence[str], seed: int, device: str) -> tuple[int, str] | None:
    """Return the place of a call and what stands there instead, if a gradient is zero in all calls but not in that."""
    dead = set.intersection(*(_zero(function, text, seed, device) for text in cases))
    if not dead:
        return None
    for place, text in enumerate(cases):
        for number in range(DRAWS):
            other = with_seeds(text, 100 * (number + 1))
            if not dead & _zero(function, other, seed, device):
                return place, other
    return None


def _zero(function: Callable[..., Any], text: str, seed: int, device: str) -> set[int]:
    """Return the places of the tensors of a call whose gradient is zero everywhere; of one that raises, none."""
    case = read_case(text, seed=seed, device=device)
    try:
        subject, (case,) = subject_of(function, (case,))
        given: list[Tensor] = []
        args, kwargs = tree_map(lambda value: _leaf(value, given), (case.args, dict(case.kwargs)))
        sloped = [t for t in tree_leaves(subject.call(*args, **kwargs)) if isinstance(t, Tensor) and t.requires_grad]
        draw = torch.Generator().manual_seed(seed)
        v = [torch.randn(t.shape, generator=draw, dtype=torch.float64).to(t.device, t.dtype) for t in sloped]
        found = torch.autograd.grad(sloped, given, v, allow_unused=True)
    except Exception:
        return set()
    return {k for k, gradient in enumerate(found) if gradient is not None and not bool(gradient.any())}


def _leaf(value: Any, given: list[Tensor]) -> Any:
    if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    given.append(value.detach().clone().requires_grad_())
    return given[-1]
