"""The formula of a spec, and those that docstrings state, in TeX."""

from __future__ import annotations

import inspect
import re
from typing import Any

from gradspec.spec._function import FunctionSpec


def formula_tex(spec: FunctionSpec) -> dict[str, Any]:
    r"""Return the mathematics of an elementwise function as TeX, derived from its sympy formula.

    The backward and forward-mode equations are not written anywhere: they are the derivatives of the surrogate.
    """
    import sympy

    primal, surrogate, symbols = sympy_formula(spec)
    bars, dots = [], []
    for name in spec.wrt:
        symbol, derivative = sympy.latex(symbols[name]), sympy.diff(surrogate, symbols[name])
        bars.append(rf"\bar{{{symbol}}} = " + _times(derivative, r"\bar{y}"))
        dots.append(_times(derivative, rf"\dot{{{symbol}}}"))
    return {
        "primal": f"y = {sympy.latex(primal)}",
        "surrogate": rf"\tilde{{y}} = {sympy.latex(surrogate)}",
        "backward": r",\qquad ".join(bars),
        "forward_mode": rf"\dot{{y}} = {' + '.join(dots)}",
    }


def stated_tex(document: Any) -> list[str]:
    """Return the displayed formulas of a docstring, an equation each: what is said where nothing is derived."""
    doc = inspect.getdoc(document) or ""
    blocks = re.findall(r"^\.\. math::\n\n((?:[ ]+\S.*\n|\n(?=[ ]))+)", f"{doc}\n", re.MULTILINE)
    return [equation.strip() for block in blocks for equation in re.split(r",\s*\\qquad\s", " ".join(block.split()))]


def _times(coefficient: Any, vector: str) -> str:
    """Return the TeX of a coefficient before a vector; sympy would sort the factors by name."""
    import sympy

    if coefficient == 1:
        return vector
    text = sympy.latex(coefficient)
    if coefficient.is_Add:
        text = rf"\left({text}\right)"
    return rf"{text}\,{vector}"


def sympy_formula(spec: FunctionSpec) -> tuple[Any, Any, dict[str, Any]]:
    """Return primal and surrogate as sympy expressions, and their symbols by argument name.

    Raises:
        ValueError: the spec has no formula, or one that uses a name that is not an argument.
    """
    import sympy

    if spec.formula is None:
        raise ValueError(f"spec {spec.name!r} has no formula")
    symbols = {name: sympy.Symbol(name) for name in spec.parameters}
    expressions = [sympy.sympify(text, locals=symbols) for text in (spec.formula.primal, spec.formula.surrogate)]
    for expression in expressions:
        if stray := expression.free_symbols - set(symbols.values()):
            raise ValueError(f"spec {spec.name!r}: formula {expression} uses {sorted(map(str, stray))}")
    return expressions[0], expressions[1], symbols
