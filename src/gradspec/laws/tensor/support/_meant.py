"""Whether a gradient that is not the derivative of forward may be meant: what only the author of a function can say.

Two forms of function have such a gradient on purpose. Forward is flat nearly everywhere in an argument, so that its
derivative is of no use: rounding, a sign, a step. Or forward hands its argument on, and backward, which is linear in
the cotangent, changes it on the way: scaling, reversal, masking. Any other gradient that is not the derivative of
forward is the derivative of nothing, until a reference says what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradspec._one_line import listed
from gradspec.law import Finding, Status, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, each_alone, fresh, like, outputs, vjp
from gradspec.laws.tensor.support._compare import largest
from gradspec.laws.tensor.support._differences import in_double, is_single
from gradspec.laws.tensor.support._jumping import digits_of, jumps, unlike, values_of
from gradspec.laws.tensor.support._memory import overlap
from gradspec.laws.tensor.support._multiplied import multiplier
from gradspec.laws.tensor.support._wide_memory import HALF

#: How to answer.
ANSWER = (
    "If so, name the map whose derivative backward applies: the option `surrogate` of an audit, a check or a spec; if "
    "not, backward is wrong."
)
#: How far an argument moves, by dtype. All digits of a float64 show in the smaller step, and in the larger one those of
#: a function that computes in float32; a step of less than an element's plateau crosses no edge of most elements.
_STEPS = {torch.float64: (1e-8, 1e-5), torch.float32: (1e-3,)}
#: How far one element moves by itself, of its size: within a step of most, and further than its dtype rounds.
_SMALL = {torch.float64: 1e-5, torch.float32: 1e-4}
#: Which share of the largest slope another one has that is more than the first one's rounding.
_COMBINED = 1e-2
_STEPS_OF = "Forward does not move with small steps of most of {} elements, and jumps with larger ones."
_CODES_OF = "Forward jumps, and elsewhere it moves with few combinations of {} elements, as with a learned scale."
#: Of how many elements the larger step may cross an edge.
_CROSSED = 0.25
#: Where else forward must be flat: at this share of the arguments, and their negative.
_SHARES = (1.0, -1.0, 0.6, -0.6, 0.03, -0.03)
#: How far away an argument must be clipped, if it is; and which share of a gradient is left where it is masked.
_FAR, _MASKED = 1e4, 0.01
#: The number of units of rounding that do not count as a step of forward; of float32 where that is all that hides one.
_ROUNDED, _ROUNDED_ONCE = 64, 3
#: Of how many elements it is asked whether forward is flat in them, and in which share it has to be.
_ASKED, _MOST_OF = 16, 0.6
#: How far a sum of gradients may be off by rounding.
_LINEAR = 1e-6


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The arguments whose gradient may be meant, and why."""

    names: tuple[str, ...]
    why: str
    #: Whether some of them may be right.
    may_be_right: bool = False
    #: Those whose gradient cannot be judged otherwise, in which forward jumps: the scale of a rounding.
    jumping: tuple[str, ...] = ()

    @property
    def finding(self) -> Finding:
        """The question."""
        asked = " and of ".join(f"`{name}`" for name in (*self.names, *self.jumping))
        move = "moves" if len(self.jumping) == 1 else "move"
        why = f"{self.why} It jumps as {listed(self.jumping)} {move}." if self.jumping else self.why
        return Finding(status=Status.QUESTION, message=f"Is the gradient of {asked} meant? {why}", likely=ANSWER)


def asked_about(trial: Trial, inputs: Inputs) -> Asked | None:
    """Return the arguments whose gradient may be meant, of a function in whose form it may be; None in any other."""
    for given in _wide_first(inputs):
        try:
            found = vjp(trial.spec.surrogate, given, seed=trial.seed)
            if any(g is not None and not bool(g.isfinite().all()) for g in found.values()):
                return None
            return _asked_about(trial, given, found) or _of_steps(trial, given)
        except Exception:  # it takes its own dtype only
            continue
    return None


def _wide_first(inputs: Inputs) -> tuple[Inputs, Inputs]:
    return in_double(inputs), inputs


def flat_outputs(trial: Trial, inputs: Inputs) -> tuple[int, ...]:
    """Return the places of the outputs that are flat in all arguments, if others are not: a spike beside a voltage."""
    function = inputs.closed(trial.spec.surrogate)
    count = len(function(*inputs.tensors()))

    def is_step(place: int) -> bool:
        def alone(*x: Tensor) -> tuple[Tensor, ...]:
            return function(*x)[place : place + 1]

        return all(is_flat(alone, inputs, name) for name in inputs.wrt)

    found = tuple(place for place in range(count) if is_step(place)) if count > 1 else ()
    return found if len(found) < count else ()


def jumping(trial: Trial, inputs: Inputs) -> tuple[str, ...]:
    """Return the arguments in which forward jumps: the derivative between two jumps need not be what is meant."""
    for given in _wide_first(inputs):  # in a half type every function jumps
        try:
            function = given.closed(trial.spec.surrogate)
            return tuple(name for name in given.wrt if jumps(function, given, name))
        except Exception:  # it takes its own dtype only
            continue
    return ()


def _asked_about(trial: Trial, inputs: Inputs, found: Mapping[str, Tensor | None]) -> Asked | None:
    function = inputs.closed(trial.spec.surrogate)
    # What cancels, as a bias before a normalisation, leaves its rounding.
    top = max((largest(g) for g in found.values() if g is not None), default=0.0)
    sloped = [
        name for name, g in found.items() if g is not None and largest(g) > _ROUNDED * torch.finfo(g.dtype).eps * top
    ]
    if flat := [name for name in sloped if is_flat(function, inputs, name)]:
        why = f"Forward is flat nearly everywhere in {listed(flat)}, where a derivative is 0."
        for where in (" below", " above", ""):
            if unmasked := [name for name in flat if unmasked_side(trial, inputs, name) == where]:
                why += f" It clips {listed(unmasked)} too, and backward does not mask what was clipped{where}: its "
                why += "gradient there is not 0."
        if by := multiplier(trial, inputs, flat):
            why += f" Backward {by}."
        return Asked(names=tuple(flat), why=why)
    if handed_on(function, inputs, trial.seed) and _is_linear(trial, inputs) and not _ignores_one(trial, inputs):
        how = multiplier(trial, inputs, sloped) or "changes the cotangent"
        why = f"Forward hands on what it is given, and backward {how}."
        return Asked(names=tuple(sloped), may_be_right=True, why=why)
    return None


def _of_steps(trial: Trial, inputs: Inputs) -> Asked | None:
    """Return the arguments of codes times a scale: in nearly every element there are steps, or all but a scale has."""
    function = inputs.closed(trial.spec.surrogate)
    for has, why in ((_has_steps, _STEPS_OF), (_has_codes, _CODES_OF)):
        stepped = [name for name in inputs.wrt if has(function, inputs, name) and jumps(function, inputs, name)]
        if stepped:
            return Asked(names=tuple(stepped), why=why.format("its" if len(stepped) == 1 else "their"))
    return None


def _has_steps(function: Callable[..., tuple[Tensor, ...]], inputs: Inputs, name: str) -> bool:
    """Whether forward is flat in most elements of an argument, each moved by itself, and moves with all of these."""
    slopes = _slopes(function, inputs, name)
    flat = [place for place, slope in slopes.items() if not slope.any()]
    return len(flat) >= max(3, _MOST_OF * len(slopes)) and _moves_all(function, inputs, name, flat)


def _has_codes(function: Callable[..., tuple[Tensor, ...]], inputs: Inputs, name: str) -> bool:
    """Whether forward moves with few combinations of the elements of an argument, as with a scale of its codes."""
    slopes = _slopes(function, inputs, name)
    if len(slopes) < 3:
        return False
    sizes = torch.linalg.svdvals(torch.stack(list(slopes.values())))
    count = int((sizes > _COMBINED * sizes[0]).sum())
    is_few = count <= (1 - _MOST_OF) * min(len(slopes), next(iter(slopes.values())).numel())
    return is_few and _moves_all(function, inputs, name, list(slopes))


def _slopes(function: Callable[..., tuple[Tensor, ...]], inputs: Inputs, name: str) -> dict[int, Tensor]:
    """Return by how much the outputs move with some elements of an argument; nothing where rounding hides it."""
    x = inputs.tensors()[inputs.wrt.index(name)]
    before = values_of(function, inputs.tensors())
    if (small := _SMALL.get(digits_of(x, before))) is None:
        return {}
    found = {}
    for place in range(0, x.numel(), max(1, x.numel() // _ASKED))[:_ASKED]:
        number = float(x.flatten()[place])
        after = _moved(function, inputs, name, place, number * (1 + small))
        moves = any(_crossed(a, b) > 0 for a, b in zip(before, after, strict=True))
        differences = torch.cat([(b - a).double().flatten() for a, b in zip(before, after, strict=True)])
        found[place] = differences / (small * number) if moves and number else torch.zeros_like(differences)
    return found


def _moves_all(function: Callable[..., tuple[Tensor, ...]], inputs: Inputs, name: str, places: Sequence[int]) -> bool:
    """Whether forward reads some elements of an argument: it moves where they go far."""
    x = inputs.tensors()[inputs.wrt.index(name)]
    before, numbers, top = values_of(function, inputs.tensors()), x.flatten().tolist(), 0.7 * largest(x)

    def moves(place: int, to: float) -> bool:
        after = _moved(function, inputs, name, place, to)
        return any(_crossed(a, b) > 0 for a, b in zip(before, after, strict=True))

    return all(any(moves(place, to) for to in (numbers[place] / 2, -numbers[place], top)) for place in places)


def _moved(
    function: Callable[..., tuple[Tensor, ...]], inputs: Inputs, name: str, place: int, to: float
) -> list[Tensor]:
    """Return the outputs where one element of an argument is another number."""
    x = inputs.tensors()
    x[inputs.wrt.index(name)].view(-1)[place] = to
    return values_of(function, x)


def is_flat(function: Callable[..., tuple[Tensor, ...]], inputs: Inputs, name: str) -> bool:
    """Whether forward does not move with small steps of an argument, wherever it is: all but one place must say so.

    Args:
        function: of the differentiated arguments.
        inputs: these, and the others.
        name: the argument.
    """
    places = list(_places(inputs))
    # A half type hides a step of forward within its rounding.
    wide = [(names, tuple(t.float() if t.dtype in HALF else t for t in x)) for names, x in places]
    said = [found for place in wide if (found := _is_flat_at(function, place, name)) is not None]
    if not said and any(t.dtype in HALF for t in inputs.tensors()):  # it takes its own type alone
        said = [found for place in places if (found := _is_flat_at(function, place, name)) is not None]
    return len(said) > 1 and said.count(False) <= (len(said) > 2)


def unmasked_side(trial: Trial, inputs: Inputs, name: str) -> str | None:
    """Return where backward gives an argument a gradient that forward clips: below, above or, empty, on both sides.

    None where forward clips none, or backward masks it.

    A step, as a sign, is the same at half of an argument: nothing between its ends is clipped.
    """
    function, at = inputs.closed(trial.spec.surrogate), inputs.wrt.index(name)
    x = inputs.tensors()
    away = torch.where(x[at] == 0, like(x, trial.seed)[at], x[at])
    away = away / away.abs()
    half, near, far, farther = (
        tuple(moved if k == at else t for k, t in enumerate(x))
        for moved in (0.5 * x[at], x[at], x[at] + _FAR * away, x[at] + 8 * _FAR * away)
    )
    values = [values_of(function, place) for place in (half, near, far, farther)]
    if not _is_equal(values[2], values[3]) or _is_equal(values[0], values[1]) or not _is_elementwise(function, x, at):
        return None
    there, beyond = (
        vjp(trial.spec.surrogate, Inputs({**inputs.values, name: place[at]}, inputs.wrt), seed=trial.seed)[name]
        for place in (near, far)
    )
    if there is None or beyond is None:
        return None
    is_left = beyond.abs() > _MASKED * there.abs().max()
    below, above = (bool((is_left & side).any()) for side in (away < 0, away > 0))
    both = (away < 0).any() and (away > 0).any()
    if not (below or above):
        return None
    return "" if (below and above) or not both else " below" if below else " above"


def _is_elementwise(function: Callable[..., tuple[Tensor, ...]], x: tuple[Tensor, ...], at: int) -> bool:
    """Whether an element of an argument that goes far away moves no other element of the outputs, as a softmax does."""
    before = values_of(function, x)
    for far in (_FAR, -_FAR):
        moved = x[at].clone()
        moved.view(-1)[0] += far
        after = values_of(function, (*x[:at], moved, *x[at + 1 :]))
        for a, b in zip(before, after, strict=True):
            if not a.shape == b.shape == x[at].shape or not torch.equal(a.flatten()[1:], b.flatten()[1:]):
                return False
    return True


def _is_equal(a: list[Tensor], b: list[Tensor]) -> bool:
    return len(a) == len(b) and all(map(torch.equal, a, b))


def handed_on(function: Callable[..., tuple[Tensor, ...]], inputs: Inputs, seed: int) -> bool:
    """Whether each output is an argument, element by element, or a view of one."""
    for k in range(3):
        x = tuple(
            t + d / 90 if k else t for t, d in zip(inputs.tensors(), like(inputs.tensors(), seed + k), strict=True)
        )
        before = tuple(map(fresh, x))
        y = [t for t in function(*x) if differentiable(t)]
        if not all(map(torch.equal, x, before)):
            return False  # it writes to what it hands on
        if not y or not all(any(_is_same(t, a) for a in x) for t in y):
            return False
    return True


def _places(inputs: Inputs) -> Iterator[tuple[tuple[str, ...], tuple[Tensor, ...]]]:
    for k, share in enumerate(_SHARES):
        x = inputs.tensors()
        moved = like(x, k)  # off an edge: 0 is one of sign, a half one of rounding
        yield inputs.wrt, tuple(share * t + d / 180 for t, d in zip(x, moved, strict=True))


def _is_flat_at(
    function: Callable[..., tuple[Tensor, ...]], place: tuple[tuple[str, ...], tuple[Tensor, ...]], name: str
) -> bool | None:
    """Whether forward stays as it is around some arguments; None where it has no value there."""
    names, x = place
    dtype = x[names.index(name)].dtype.to_real()
    steps = _STEPS.get(dtype, (16 * torch.finfo(dtype).eps,))
    try:
        y = values_of(function, x)
        if not y or not all(bool(t.isfinite().all()) for t in y):
            return None
        # Numbers of float32 hide the steps that float64 would show; between two of them lies no more than its rounding.
        is_narrow = dtype == torch.float64 and all(map(is_single, y))
        steps = _STEPS[torch.float32] if is_narrow else steps
        for number, step in enumerate(steps):
            for sign in (step, -step):
                # Each element goes its own way: a softmax does not move where all of them go the same.
                moved = tuple(
                    t + sign * unlike(t) * t.abs().clamp(min=1) if n == name else t
                    for n, t in zip(names, x, strict=True)
                )
                after = values_of(function, moved)
                crossed = max(_crossed(a, b, is_narrow=is_narrow) for a, b in zip(y, after, strict=True))
                if crossed > (_CROSSED if number == len(steps) - 1 else 0):
                    return False
    except Exception:
        return None
    return True


def _crossed(a: Tensor, b: Tensor, *, is_narrow: bool = False) -> float:
    """Return the share of elements that differ by more than rounding: what is added and taken away again leaves it."""
    units = _ROUNDED_ONCE if is_narrow or a.dtype in HALF else _ROUNDED
    rounded = units * torch.finfo(torch.float32 if is_narrow else a.dtype).eps
    return float(((a - b).abs() > rounded * largest(a)).double().mean())


def _is_same(y: Tensor, x: Tensor) -> bool:
    is_copy = y.numel() == x.numel() and torch.equal(y.detach().flatten(), x.flatten())
    return is_copy or overlap(y, x)


def _ignores_one(trial: Trial, inputs: Inputs) -> bool:
    """Whether no gradient comes of the cotangent of one output, and some of those of others: nobody means that."""
    y = outputs(trial.spec.surrogate(*inputs.args()))
    ones = tuple(torch.ones_like(t) for t in y)
    comes = [
        any(g is not None and bool(g.any()) for g in vjp(trial.spec.surrogate, inputs, alone).values())
        for t, alone in zip(y, each_alone(ones), strict=True)
        if differentiable(t)
    ]
    return any(comes) and not all(comes)


def _is_linear(trial: Trial, inputs: Inputs) -> bool:
    """Whether backward is linear in the cotangent, also in one that is large, and in one that is small."""
    function = trial.spec.surrogate
    y = outputs(function(*inputs.args()))
    v, w = (like(tuple(t.detach() for t in y), trial.seed + k) for k in (5, 6))
    of_v, of_w = vjp(function, inputs, v), vjp(function, inputs, w)
    for a, b in ((2.0, -3.0), (1000.0, 1.0), (0.001, 0.002)):
        both = vjp(
            function, inputs, tuple(a * s + b * t if differentiable(s) else s for s, t in zip(v, w, strict=True))
        )
        for name, got in both.items():
            one, other = of_v[name], of_w[name]
            if got is None or one is None or other is None:
                if not (got is one is other is None):
                    return False
                continue
            right = a * one + b * other
            if not largest(got - right) <= _LINEAR * max(largest(right), 1e-300):
                return False
    return True
