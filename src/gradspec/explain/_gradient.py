"""Explain a gradient that differs: each answer is shown by a test, and again on new numbers.

A test changes one thing (the cotangent, the point, an argument, a saved tensor) or looks for the wrong numbers in
another place. What raises in a test, as a shape that does not fit, shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from gradspec._one_line import listed
from gradspec.explain._cut import has_graph
from gradspec.explain._cut_within import of_a_cut
from gradspec.explain._factor import factor, zero
from gradspec.explain._linearity import NOT_LINEAR, of_the_cotangent
from gradspec.explain._lost import why_none
from gradspec.explain._moved import along_another_dimension, moved, not_transposed, permuted
from gradspec.explain._options import (
    moves_as_much,
    with_a_number_beside,
    with_an_even_number,
    with_an_open_mask,
    with_another_option,
    with_more_of,
    with_other_options,
)
from gradspec.explain._other_calls import (
    along_which_it_is_the_same,
    beside_a_kink,
    in_contiguous_memory,
    with_a_negative_index,
    with_a_negative_number,
    with_a_sorted_index,
    with_a_symmetric_argument,
    with_an_index_that_repeats,
    with_no_empty_group,
    with_one_element,
    with_one_sample,
)
from gradspec.explain._other_cotangents import (
    conjugated,
    ignores_an_output,
    ignores_the_cotangent,
    in_another_order,
    of_one_output,
    reduced,
)
from gradspec.explain._overwritten import of_a_write
from gradspec.explain._own_factors import of_a_count, of_each_element, of_each_row
from gradspec.explain._parts_of_the_output import from_some_outputs, with_a_scaled_cotangent
from gradspec.explain._repaired import changed, of_an_edge, refute, repaired, without_a_call
from gradspec.explain._saved import of_a_saved_tensor, of_a_value_of_forward
from gradspec.explain._steps import without_a_step
from gradspec.explain._symptoms import (
    at_the_output,
    beyond_a_bound,
    exchanged,
    in_some_places,
    of_a_mask,
    of_a_part,
    of_forward,
    of_narrow_numbers,
    transposed,
)
from gradspec.explain._terms import missing_others, missing_sum, missing_term, other_dimension
from gradspec.explain._wrong import MENDED, NEAR, NEARLY, Wrong, scaled
from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._call import WIDE, Inputs, cotangents, like, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._guess import EXACT, has_digits_of_float32

#: What is said where a gradient is compared with none.
_NO_GRAPH = (
    "what it is compared with has no graph, so that no gradient is expected: where one is meant, give its surrogate, "
    "or leave out detach() and no_grad()"
)
#: Looks for one mistake.
Test = Callable[[Wrong], Reason | None]
#: In this order: what needs the fewest words to be mended comes first, and of two that hold the simpler one.
TESTS: tuple[Test, ...] = (
    in_contiguous_memory,
    zero,
    of_narrow_numbers,
    conjugated,
    factor,
    ignores_the_cotangent,
    of_the_cotangent,
    exchanged,
    of_forward,
    transposed,
    with_a_negative_number,
    with_a_negative_index,
    with_no_empty_group,
    of_a_count,
    with_an_index_that_repeats,
    with_a_sorted_index,
    beside_a_kink,
    in_another_order,
    ignores_an_output,
    reduced,
    not_transposed,
    moved,
    at_the_output,
    of_a_cut,
    of_a_write,
    of_an_edge,
    of_a_saved_tensor,
    repaired,
    permuted,
    of_each_element,
    with_a_scaled_cotangent,
    of_one_output,
    with_another_option,
    along_which_it_is_the_same,
    with_an_open_mask,
    of_a_mask,
    of_each_row,
    with_an_even_number,
    in_some_places,
    of_a_value_of_forward,
    missing_term,
    of_a_part,
    from_some_outputs,
    other_dimension,
    along_another_dimension,
    with_a_symmetric_argument,
    with_one_sample,
    missing_sum,
    without_a_step,
    beyond_a_bound,
    with_a_number_beside,
    with_one_element,
    missing_others,
)
#: What says where a gradient is right, and not what mends it.
_OF_A_PLACE = ("option", "places", "one slice", "one element")
#: What says how the numbers are wrong, and not what makes them so.
_OF_NUMBERS_ALONE = ("factor", "zero", "exchanged", "transposed")
#: What puts other numbers in a place, and shows nothing where all should be zero, as behind a softmax of one number.
_OF_NUMBERS = (of_forward, at_the_output, of_a_saved_tensor, of_a_value_of_forward, with_one_element)
#: What holds at the point of the case only, and is asked again for other cotangents there.
_OF_THE_POINT = (
    beside_a_kink,
    with_a_negative_number,
    with_a_negative_index,
    with_no_empty_group,
    with_an_index_that_repeats,
    of_forward,
)
#: What a call that shows little may mend by chance, and is asked for larger arguments, too.
_OF_ALL_SIZES = (of_an_edge, repaired, changed, without_a_call, not_transposed, at_the_output, of_a_saved_tensor)
_LARGER = (2, 20)
#: How far off a gradient is, in parts of the largest element, of which a mended one may be off by a little.
_CLEARLY = 1e-3
_LEFT = "what is left is less than 1e-6 of the largest element, as float32 or a solver leaves it"
#: How much smaller the cotangents are that no clip clips.
_SMALL = 1e-2
#: How many readings of a method are tried elsewhere, until one holds.
_READINGS = 12
#: How many times a test is asked again.
_AGAIN = 2
#: How many other cases of the spec are asked.
_CASES = 4
#: How often other numbers are drawn for that: on some, as where a projection is constant, no gradient is wrong.
_DRAWS = 6


def why_gradient(trial: Trial) -> Reason | None:
    """Return what is wrong with the gradient of a trial that breaks the law `vjp`; None where no test shows it."""
    inputs = Inputs.of(trial)
    y = outputs(trial.spec.primal(*inputs.args()))
    if trial.spec.gradient is None and not has_graph(trial.spec.surrogate, inputs):
        return Reason(kind="reference without a graph", words=_NO_GRAPH)
    for _, v in cotangents(trial, y):
        for name in inputs.wrt:
            wrong = Wrong(trial, inputs, name, v)
            if wrong.given[name] is None:
                if wrong.right[name] is not None and bool(wrong.right[name].any()):  # type: ignore[union-attr]  # asked
                    return why_none(trial, inputs, name)
            elif compare(trial, "gradient", wrong.given[name], wrong.right[name]) is not HOLDS:
                found = _with_its_line(_best(wrong), wrong) or _of_the_others(wrong)
                if found is None or found.kind != "repair" or not has_digits_of_float32(wrong.got, wrong.expected):
                    return found
                return replace(found, words=f"{EXACT}; {found.words}")
    return None


def _first(wrong: Wrong) -> Reason | None:
    is_zero = not bool(wrong.expected.any())
    asked = [test for test in TESTS if not (is_zero and test in _OF_NUMBERS)]
    return next((r for test in asked if (r := _shown(test, wrong)) is not None), None)


def _best(wrong: Wrong) -> Reason | None:
    """Return what is shown of a gradient; what mends all but the last digits goes before where it is right already."""
    found = _first(wrong)
    if found is not None and found.kind not in _OF_A_PLACE:
        return found
    near = _nearly(wrong)
    return near if near is not None and (found is None or near.kind == "repair") else found


def _of_the_others(wrong: Wrong) -> Reason | None:
    """Return which gradients are right, where nothing else is shown of the one that is not."""
    again = wrong.redrawn(wrong.trial.seed + 31, moved=True)
    right = [name for name in wrong.right_already if wrong.right[name] is not None]
    if not right or not quietly(lambda: again.right_already == wrong.right_already):
        return None
    rest = [name for name in wrong.inputs.wrt if name not in right]
    said = f"the gradient of {listed(rest)} is wrong, and right for {listed(right)}"
    return Reason(kind="of arguments", words=said, evidence={"right": right})


def _with_its_line(found: Reason | None, wrong: Wrong) -> Reason | None:
    """Return what is done to a cotangent, or a factor, with the line in which another reading mends it.

    And of what is zero, transposed or in another's place. Of what is wrong for odd sizes alone, with the place; of a
    repair of one, with the output.
    """
    if found is None:
        return None
    if found.kind == "even or odd":
        test: Test = in_some_places
    elif found.kind in _OF_NUMBERS_ALONE:
        test = changed
    elif found.kind in NOT_LINEAR:
        test = without_a_call
    elif found.kind == "repair" and "argument" in found.evidence:
        test = of_one_output
    else:
        return found
    without = _shown(test, wrong)
    if without is None:
        return found
    evidence = {**found.evidence, **without.evidence} | ({MENDED: without.words} if test is changed else {})
    return replace(found, words=f"{found.words}; {without.words}", evidence=evidence)


def _nearly(wrong: Wrong) -> Reason | None:
    """Return what makes a gradient right but for what the tolerance of a solver or a float32 on the way leaves."""
    if NEAR not in wrong.found or wrong.got.dtype not in WIDE or not bool(wrong.got.isfinite().all()):
        return None
    if _up_to(wrong, _CLEARLY).same(wrong.got, wrong.expected):
        return None
    found = _first(_up_to(wrong, NEARLY))
    return replace(found, words=f"{found.words}; {_LEFT}") if found else None


def _up_to(wrong: Wrong, rtol: float) -> Wrong:
    """Return the same question with a tolerance, in parts of the largest element."""
    spec = wrong.trial.spec
    accuracy = replace(spec.accuracy, rtol=max(rtol, spec.accuracy.rtol))
    return Wrong(replace(wrong.trial, spec=replace(spec, accuracy=accuracy)), wrong.inputs, wrong.name, wrong.v)


def _shown(test: Test, wrong: Wrong) -> Reason | None:
    """Return what a test shows, if it shows the same elsewhere; of repairs, the first that does."""
    for _ in range(_READINGS):
        found: Reason | None = quietly(partial(test, wrong))
        if found is None or _is_shown_again(found, test, wrong):
            return found
        if found.kind != "repair":
            break
        refute(wrong, found)
    return None


def _is_shown_again(found: Reason, test: Test, wrong: Wrong) -> bool:
    """Whether a test shows the same on new random numbers, of those on which the gradient is wrong, and elsewhere."""
    asked = 0
    for k in range(_DRAWS):
        again = wrong.redrawn(wrong.trial.seed + 31 + k, moved=test not in _OF_THE_POINT)
        if quietly(lambda again=again: again.same(again.got, again.expected)):  # type: ignore[misc]  # a default
            continue
        if not found.is_as(quietly(partial(test, again))):
            return False
        asked += 1
        if asked == _AGAIN:
            break
    if not asked or test not in _OF_ALL_SIZES:
        return bool(asked)
    holds = (
        _holds_for_small_cotangents,
        _holds_for_larger,
        _holds_for_more,
        _holds_for_other_indices,
        _holds_for_options,
        _holds_for_other_cases,
    )
    return all(one(found, test, wrong) for one in holds)


def _stays(found: Reason, test: Test, other: Wrong, *, mends: bool = True) -> bool:
    """Whether a test shows the same of another call, or can show nothing; a repair leaves right what is right there.

    Args:
        found: what it has shown.
        test: the test.
        other: the other call.
        mends: whether it has to show the same of a call that is wrong, too.
    """
    if not quietly(lambda: bool(other.expected.isfinite().all()) and bool(other.expected.any())):
        return True
    is_right = quietly(lambda: other.same(other.got, other.expected))
    if is_right is None or (found.kind != "repair" if is_right else not mends):
        return True
    return found.is_as(quietly(partial(test, other)))


def _holds_for_small_cotangents(found: Reason, test: Test, wrong: Wrong) -> bool:
    """Whether a test shows the same for cotangents that no clip clips."""
    return _stays(found, test, replace(wrong, v=scaled(wrong.v, _SMALL)))


def _holds_for_larger(found: Reason, test: Test, wrong: Wrong) -> bool:
    """Whether a test shows the same for larger arguments, as behind both ends of a clip."""
    larger, largest = (wrong.redrawn(wrong.trial.seed + 41, moved=True, times=times) for times in _LARGER)
    return _stays(found, test, larger) and _stays(found, test, largest, mends=False)  # there an iteration may diverge


def _holds_for_more(found: Reason, test: Test, wrong: Wrong) -> bool:
    """Whether a test shows the same for arguments of other sizes, one more at a time."""
    sizes = sorted({size for t in wrong.inputs.tensors() for size in t.shape if size})
    return all(_holds_for_size(found, test, wrong, size) for size in sizes)


def _holds_for_size(found: Reason, test: Test, wrong: Wrong, size: int) -> bool:
    """Whether a test shows the same with one element more of a size, or with twice of an even one, as of two halves."""
    one: Wrong | None = quietly(partial(with_more_of, wrong, size, 1))
    if one is None or _stays(found, test, one):
        return True
    twice: Wrong | None = None if size % 2 else quietly(partial(with_more_of, wrong, size, size))
    return twice is not None and found.is_as(quietly(partial(test, twice)))


def _holds_for_other_indices(found: Reason, test: Test, wrong: Wrong) -> bool:
    """Whether a test shows the same where whole numbers stand in another order, as those of an index."""
    values = wrong.inputs.values
    for name, value in values.items():
        if isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32) and value.ndim:
            rolled = Inputs({**values, name: value.roll(1, 0)}, wrong.inputs.wrt)
            is_taken = not torch.equal(rolled.values[name], value) and wrong.holds(rolled) is not None
            if is_taken and not _stays(found, test, Wrong(wrong.trial, rolled, wrong.name, wrong.v, wrong.found)):
                return False
    return True


def _holds_for_other_cases(found: Reason, test: Test, wrong: Wrong) -> bool:
    """Whether a test shows the same of the other cases of the spec."""
    for other in islice(wrong.trial.others(), _CASES):
        if other.spec.surrogate is not wrong.trial.spec.surrogate or other.case.name == wrong.trial.case.name:
            continue
        inputs = Inputs.of(other)
        v = quietly(lambda other=other, inputs=inputs: like(outputs(other.spec.primal(*inputs.args())), other.seed))  # type: ignore[misc]
        if v is None or wrong.name not in inputs.wrt:
            continue
        if not _stays(found, test, Wrong(other, inputs, wrong.name, v, wrong.found)):
            return False
    return True


def _holds_for_options(found: Reason, test: Test, wrong: Wrong) -> bool:
    """Whether what mends a call leaves right what is right with another number or the other value of a flag.

    A repair that mends it with one number, as a mask at 0 where the bound is 0.1, mends it with another one, too.
    """
    beside = [
        Inputs({**wrong.inputs.values, name: other}, wrong.inputs.wrt)
        for name, value in wrong.inputs.values.items()
        if type(value) in (int, float)
        for other in ((value - 1, value + 1) if isinstance(value, int) else (1.0, 2 * value))
    ]
    for other in (*beside, *(one for _, one in with_other_options(wrong.inputs))):
        is_asked = wrong.holds(other, drawn=True)
        if found.kind == "repair" and is_asked is False:
            is_asked = any(
                type(value) is float and value != other.values[n] for n, value in wrong.inputs.values.items()
            )
        if is_asked and quietly(lambda other=other: moves_as_much(wrong, other)):  # type: ignore[misc]  # a default
            y = outputs(wrong.trial.spec.primal(*other.args()))
            flipped = Wrong(wrong.trial, other, wrong.name, like(y, wrong.trial.seed), wrong.found)
            # At an option of 0, by which backward divides, nothing is a number.
            is_number = quietly(lambda flipped=flipped: _is_finite(flipped))  # type: ignore[misc]  # a default
            if is_number and not found.is_as(quietly(partial(test, flipped))):
                return False
    return True


def _is_finite(wrong: Wrong) -> bool:
    """Whether the gradients of a call are numbers, and the one in question should be."""
    made = (t for t in wrong.given.values() if t is not None)
    return all(bool(t.isfinite().all()) for t in (wrong.expected, *made))
