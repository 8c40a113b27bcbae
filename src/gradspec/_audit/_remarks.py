"""Remarks beside the verdicts of an audit, a sentence or two each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gradspec._audit._measured import Measured
from gradspec._one_line import listed
from gradspec.law import Status
from gradspec.laws import torch_version
from gradspec.report import Report


def of_dtypes(own: torch.dtype | None, error: str, refused: Sequence[torch.dtype]) -> Iterator[str]:
    """Yield in which dtype the function was audited, where that is not the given one, and which ones it refuses."""
    if own is not None:
        yield f"The calls were audited in {_name(own)}: in float64, the default here, a plain call raises {error}."
    elif refused:
        yield f"A plain call raises in {', '.join(map(_name, refused))}."


def of_calls(
    measured: Measured, *, is_asked: bool = True, is_wrong: bool = False, is_lost: bool = False
) -> Iterator[str]:
    """Yield what plain calls show.

    Args:
        measured: what they show.
        is_asked: whether the report has the law that tells which gradients are lost; each is told once.
        is_wrong: whether a gradient is not the derivative of forward: it says nothing of the function then.
        is_lost: whether one is none at all.
    """
    # Beside a wrong gradient, which is not a lost one, nothing is asked: what is not marked may get none.
    tells = not is_wrong or is_lost
    told = {one.name for one in measured.lost if one.is_wrong or tells} if is_asked else set()
    untold = [one.name for one in measured.lost if one.name not in told and one.got == "None"]
    if not measured.wrt and not measured.hidden and not told:
        yield "No gradient reaches any argument: the output is connected to no graph."
    if measured.stateful and not is_asked:
        yield (
            "Two calls with the same arguments differ though the generators are seeded alike: the function keeps "
            "state. Only laws of effects and memory are asked: audit a core that takes the state as an argument."
        )
    if measured.moved:
        state = listed(measured.moved)
        yield f"Forward moves {state}, state of the module: each call here begins with the values that it had."
    if measured.other_dtype:
        yield "The output is {} where the arguments are {}.".format(*measured.other_dtype)
    if measured.view_of:
        yield f"The output shares memory with `{measured.view_of}`: a write to one changes the other."
    ignored = [name for name in dict.fromkeys((*measured.ignored, *untold)) if name not in told]
    if ignored and measured.wrt:
        yield f"The output changes with {listed(ignored)}, and backward returns no gradient for {_it(ignored)}."
    if places := sorted({one.place for one in measured.graphless if one.is_by_name}):
        what = f"Output {places[0]} has" if len(places) == 1 else f"Outputs {', '.join(map(str, places))} have"
        yield f"{what} no graph: a loss of {_it(places)} trains nothing."
    if measured.is_partly_finite:
        yield "The output is infinite or NaN in places: what backward gives there is judged beside a reference only."
    if measured.unused:
        yield f"The output does not depend on {listed(measured.unused, 'or')}, by any value that was tried."
    if zero := [name for name in measured.zero if name not in (*measured.unused, *told)]:
        yield f"The gradient of {listed(zero)} is zero at all values that were tried."
    if measured.fixed:
        means = f": the function is linear in {_it(measured.fixed)}, or a straight-through estimator"
        which = listed(measured.fixed)
        yield f"The gradient of {which} is the same at all values that were tried{'' if is_wrong else means}."
    if measured.infinite_at_zero:
        yield f"Where {listed(measured.infinite_at_zero, 'or')} is zero the value is finite, and its gradient is not."


def of_copies(written: Sequence[str]) -> Iterator[str]:
    """Yield which arguments a call gets a copy of."""
    if written:
        yield (
            f"Forward writes to {listed(written)}, and autograd knows. torch lets nothing write to a leaf, so each "
            f"call here gets a copy of {_it(written)}."
        )


def of_report(report: Report, *, is_wrong: bool = False) -> Iterator[str]:
    """Yield which transforms give another result silently, though that is not the function's own doing.

    Args:
        report: what the laws found.
        is_wrong: whether backward itself is wrong: that compiled code gives another result is no limit of torch then.
    """
    silent = dict.fromkeys(
        verdict.law
        for verdict in report.verdicts
        # `adjoint` compares two derivatives, and so do these; nobody uses them as a transform.
        if verdict.status is Status.NOT_PROMISED
        and "raised" not in verdict.finding.details
        and verdict.law not in ("adjoint", "second_order", "forward_over_reverse")
    )
    if silent and not is_wrong:
        yield _limit(list(silent), "of this form")
    frozen = [verdict.finding for verdict in report.verdicts if "frozen" in verdict.finding.details]
    for finding in frozen[:1]:
        yield f"{finding.message[:1].upper()}{finding.message[1:]}."


def of_noise(measured: Measured, silent: Sequence[str]) -> Iterator[str]:
    """Yield what is said of noise, in one remark.

    Args:
        measured: what plain calls show.
        silent: under which transforms a sound function of the same form, without noise, gives another result silently.
    """
    if not measured.is_noisy:
        return
    said = []
    if measured.noisy_forward:
        said.append("Two calls with the same arguments differ: the function draws noise.")
    if measured.noisy_backward:
        said.append("Backward draws noise: two backward passes through one graph differ.")
    said.append("The calls compared here draw the same numbers; laws that trace, batch or round a call are left out.")
    if silent:
        said.append(_limit(silent, "of this form that draws none"))
    yield " ".join(said)


def _limit(laws: Sequence[str], form: str) -> str:
    return (
        f"A limit of torch {torch_version()}, and no fault of this function: any function {form} silently gives "
        f"another result than in eager mode under {listed(laws)}. `gradspec explain {laws[0]}` says more."
    )


def _it(names: Sequence[object]) -> str:
    return "them" if len(names) > 1 else "it"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
