r"""`torch.vmap` is the loop over the batch, for values, gradients and tangents, whatever dimension is batched.

Why it matters: ensembles and per-sample gradients are written with it.

What breaks it: a Function without `generate_vmap_rule`; a rule that forgets that an operand may be batched in
another dimension, or not at all.

Remedy: set `generate_vmap_rule = True`, or write a `vmap` staticmethod.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Reason, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, fresh, like, outputs, pushforward, resembling
from gradspec.laws.tensor.support._compare import compare, is_one
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind
from gradspec.laws.tensor.support._reference import is_asked, is_stand_in, module_state, on_spec_side, reference
from gradspec.laws.tensor.support._transform import expected_gradients, judge, weighted
from gradspec.spec._dispatch import kernels

#: Of each argument, the dimension in which it is batched; None where it is not.
InDims = tuple[int | None, ...]

BATCH = 3
#: How many choices of dimensions are tried at most: three a tensor make 27 of three tensors.
CHOICES = 27
#: The likely cause where the first dimension can be batched, and no other one.
OF_ONE_DIMENSION = Reason(
    kind="dimension 0",
    words="right where the batch is dimension 0: the `vmap` rule takes it to be there, whatever `in_dims` says",
)


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    # A reference of a module that is audited may have weights of its own.
    kept = frozenset() if is_stand_in(trial.spec.primal) else module_state(trial.spec)
    every = tuple(name for name, value in inputs.values.items() if isinstance(value, Tensor) and name not in kept)
    for names in dict.fromkeys((inputs.wrt, every)):
        for dim, why in ((0, None), (-1, OF_ONE_DIMENSION)):
            if (finding := _batched(trial, inputs, names, dim)) is not HOLDS:
                is_shown = why and not finding.likely and quietly(lambda: _is_of_rule(trial, inputs, names, dim))  # noqa: B023  # called at once
                return finding.because(why) if is_shown else finding
    if (finding := _mixed(trial, inputs, every)) is not HOLDS:
        return finding
    return _tangents(trial, inputs) if is_asked(trial.spec, "forward_mode") else HOLDS


def _tangents(trial: Trial, inputs: Inputs) -> Finding:
    """Judge forward mode inside vmap, as in `torch.func.jacfwd`."""
    given = tuple(inputs.values[name] for name in inputs.wrt)
    elements = [tuple(map(fresh, given)), *(resembling(given, trial.seed + k) for k in range(1, BATCH))]
    along = [like(element, trial.seed + k) for k, element in enumerate(elements)]
    function, right = inputs.closed(trial.spec.function), inputs.closed(reference(trial.spec))
    try:
        if not any(t.any() for t in pushforward(function, elements[0], along[0])[1]):
            return HOLDS  # no tangent, as of any operator of torch.library: the law jvp says so
    except Exception:
        return HOLDS  # without vmap too: the law jvp says so
    x, u = (tuple(torch.stack(column) for column in zip(*rows, strict=True)) for rows in (elements, along))
    got = torch.vmap(lambda *both: pushforward(function, both[: len(x)], both[len(x) :])[1])(*x, *u)
    expected = [
        pushforward(right, tuple(t.contiguous() for t in element), direction)[1]
        for element, direction in zip(elements, along, strict=True)
    ]
    for mine, theirs in zip(got, map(torch.stack, zip(*expected, strict=True)), strict=True):
        # The batch as a whole: an element in which the function is flat has terms of the size of the others.
        if (finding := compare(trial, "tangent of the output by jvp under vmap", mine, theirs)) is not HOLDS:
            return finding
    return HOLDS


def _batched(trial: Trial, inputs: Inputs, names: tuple[str, ...], dim: int) -> Finding:
    """Judge values and gradients where all arguments are batched in one dimension."""
    in_dims = (dim,) * len(names)
    way = f"vmap over {', '.join(f'`{name}`' for name in names)} in dimension {dim}"
    if (finding := _values(trial, inputs, names, in_dims, way)) is not HOLDS:
        return finding
    return _gradients(trial, inputs, names, in_dims, way) if is_asked(trial.spec, "func_grad") else HOLDS


def _is_of_rule(trial: Trial, inputs: Inputs, names: tuple[str, ...], dim: int) -> bool:
    """Whether the function has a rule of its own, and each element of the batch is right without vmap."""
    overload = getattr(trial.spec, "overload", None)
    behind = classes_behind(outputs(trial.spec.function(*inputs.args(inputs.leaves()))))
    has_rule = any(getattr(cls, "vmap", Function.vmap) is not Function.vmap for cls in behind)
    if not has_rule and (overload is None or "FuncTorchBatched" not in kernels(overload)):
        return False
    rows, stacked = _stacked(trial, inputs, names, (dim,) * len(names))

    def value(tensors: tuple[Tensor, ...], function: Callable[..., Any]) -> dict[str, Tensor | None]:
        y = outputs(function(*inputs.args(dict(zip(names, tensors, strict=True)))))
        return {str(place): t for place, t in enumerate(y)}

    elements = zip(*(t.unbind(dim) for t in stacked), strict=True)
    right = [value(row, trial.spec.primal) for row in rows]
    shifted = [*right[1:], right[0]]
    return all(
        is_one(value(element, trial.spec.function), expected, but=another)
        for element, expected, another in zip(elements, right, shifted, strict=True)
    )


def _mixed(trial: Trial, inputs: Inputs, names: tuple[str, ...]) -> Finding:
    """Judge values where each argument is batched in a dimension of its own, or not at all."""
    ranks = [inputs.values[name].ndim for name in names]
    for dims in islice(product(*((0, None, rank) for rank in ranks)), CHOICES if len(names) > 1 else 0):
        if len(set(dims)) == 1:
            continue  # all alike is judged above
        way = ", ".join(
            f"`{name}` " + ("not batched" if dim is None else f"in dimension {dim}")
            for name, dim in zip(names, dims, strict=True)
        )
        if (finding := _values(trial, inputs, names, dims, f"vmap with {way}")) is not HOLDS:
            return finding
    return HOLDS


def _stacked(
    trial: Trial, inputs: Inputs, names: tuple[str, ...], in_dims: InDims
) -> tuple[list[tuple[Tensor, ...]], list[Tensor]]:
    """Return the arguments of each element of a batch, and the batch: an argument without a dimension is the same."""
    given = tuple(inputs.values[name] for name in names)
    others = (resembling(given, trial.seed + k) for k in range(1, BATCH))
    rows = [tuple(map(fresh, given))]
    for other in others:
        rows.append(tuple(t if dim is not None else x for t, x, dim in zip(other, rows[0], in_dims, strict=True)))
    columns = zip(zip(*rows, strict=True), in_dims, strict=True)
    return rows, [column[0] if dim is None else torch.stack(column, dim) for column, dim in columns]


def _values(trial: Trial, inputs: Inputs, names: tuple[str, ...], in_dims: InDims, way: str) -> Finding:
    """Judge the values of a batch, element by element."""
    rows, stacked = _stacked(trial, inputs, names, in_dims)

    def value(*tensors: Tensor) -> Any:
        return trial.spec.function(*inputs.args(dict(zip(names, tensors, strict=True))))

    got = outputs(torch.vmap(value, in_dims=in_dims)(*stacked))
    for k, row in enumerate(rows):
        primal = on_spec_side("primal", trial.spec.primal, *inputs.args(dict(zip(names, row, strict=True))))
        for mine, theirs in zip(got, outputs(primal), strict=True):
            if (finding := compare(trial, f"value {k} of {way}", mine[k], theirs)) is not HOLDS:
                return finding
    return HOLDS


def _gradients(trial: Trial, inputs: Inputs, names: tuple[str, ...], in_dims: InDims, way: str) -> Finding:
    elements, stacked = _stacked(trial, inputs, names, in_dims)
    rows = [Inputs({**inputs.values, **dict(zip(names, element, strict=True))}, inputs.wrt) for element in elements]
    v = like(outputs(on_spec_side("primal", trial.spec.primal, *inputs.args())), trial.seed)
    places = tuple(names.index(name) for name in inputs.wrt)

    def loss(*tensors: Tensor) -> Tensor:
        return weighted(lambda *t: trial.spec.function(*inputs.args(dict(zip(names, t, strict=True)))), v)(*tensors)

    try:
        torch.func.grad(loss, argnums=places)(*elements[0])
    except Exception:
        return HOLDS  # without vmap too: the law func_grad says so
    got = torch.vmap(torch.func.grad(loss, argnums=places), in_dims=in_dims)(*stacked)
    for k, row in enumerate(rows):
        finding = judge(trial, inputs, way, tuple(g[k] for g in got), expected_gradients(trial, row, v))
        if finding is not HOLDS:
            return finding
    return HOLDS


VMAP = Law(
    name="vmap",
    family="transforms",
    scope=Scope.FUNC,
    statement=r"\operatorname{vmap}(F)(X)_i = F(X_i)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    capability="vmap",
)
