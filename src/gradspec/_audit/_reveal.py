"""The sweep of an audit: which calls with one thing changed show what the given ones do not, made small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._apart import apart
from gradspec._audit._case_syntax import read_case
from gradspec._audit._subject import Subject, subject_of
from gradspec._audit._sweep import sizes, smaller, variants
from gradspec.law import Finding, Law, Status, Verdict
from gradspec.profile import Profile
from gradspec.spec import Case

#: How many calls are tried at most for each that is given, and how many smaller ones of one that shows something.
MOST, SMALLER = 96, 16
#: Returns the verdicts of laws on calls.
Judge = Callable[[Sequence[str], Sequence[Law]], Sequence[Verdict]]
#: Gives what is audited its references, for calls.
Refer = Callable[[Subject, Sequence[Case]], Subject]


class End(Enum):
    """How a call ends."""

    FINITE = auto()
    INFINITE = auto()
    #: The function or a reference refuses it.
    REFUSED = auto()
    #: Forward takes it, and backward raises.
    RAISES = auto()


#: Returns how a call ends.
Ends = Callable[[str], End]
#: The laws that say whether a value and a gradient are right.
ASKED = ("primal", "vjp", "surrogate")


@dataclass(frozen=True)
class Swept:
    """The result of a sweep."""

    #: A call for each law that the given calls do not break, the smallest that shows it.
    cases: tuple[str, ...]
    #: What was tried and found, in a sentence.
    said: str


def swept(
    function: Callable[..., Any],
    cases: Sequence[Any],
    judge: Judge,
    laws: Sequence[Law],
    profile: Profile,
    seed: int,
    *,
    refer: Refer,
    has_reference: bool = False,
) -> Swept:
    """Try calls with other sizes, values and options; those that the function or its reference refuses say nothing.

    Args:
        function: what is audited.
        cases: its calls; those that are written as text are changed.
        judge: returns the verdicts of laws on calls.
        laws: those of the audit.
        profile: how hard, for the limit of time.
        seed: of the random numbers of the calls.
        refer: gives what is audited its references.
        has_reference: whether something says what is right where the function returns NaN or an infinity.
    """
    if not (written := [case for case in cases if isinstance(case, str)]):
        return Swept((), "no call is written as text, to be changed")
    asked = [law for law in laws if law.name in ASKED]
    subject, _ = subject_of(function, tuple(read_case(text, seed=seed) for text in written[:1]))
    tried = [v for text in written for v in islice(variants(text, function, subject.signature), MOST)]
    ends = partial(_end, function, refer, seed, profile.device)
    ended = _ended(ends, tried, profile, seed)
    judged = (End.FINITE, End.INFINITE) if has_reference else (End.FINITE,)
    taken = [text for text in tried if ended[text] in judged]
    # Where a gradient is wrong already, or perhaps meant to be another one, no further call says more of it.
    given = judge(written, asked) if taken and asked else ()
    known = {verdict.law for verdict in given if verdict.status is not Status.HOLDS}
    asked = [law for law in asked if law.name in {verdict.law for verdict in given} - known]
    refused: set[str] = set()
    judge = _without_refused(judge, refused)
    found: dict[str, str] = {}
    for verdict in judge(taken, asked) if taken and asked else ():
        if _is_wrong(verdict) and verdict.law not in found and verdict.case not in written:
            found[verdict.law] = verdict.case
    by_name = {law.name: law for law in asked}
    shrunk = {law: _smallest(text, judge, by_name[law], ends, profile, seed) for law, text in found.items()}
    # A call with a dimension more may be none that is meant, and forward may take it by chance.
    of_sizes = {v for text in written for v in sizes(text, function)}
    raising = [text for text in tried if ended[text] is End.RAISES and text in of_sizes]
    shown = [*shrunk.values(), *([] if known or found else raising[:1])]
    count = Counter(ended.values())
    left_out = {"refused": count[End.REFUSED] + count[End.RAISES] - len(raising) + len(refused.intersection(taken))}
    left_out["not finite, which only a reference judges"] = 0 if has_reference else count[End.INFINITE]
    said = f"{len(tried)} calls of other sizes, values and options were tried"
    said += "".join(f", and {count} of them {how}" for how, count in left_out.items() if count)
    if raising:
        said += f"; forward takes {raising[0]}, and backward raises"
    for law, text in shrunk.items():
        said += f"; {text} breaks `{law}`"
    return Swept(tuple(dict.fromkeys(shown)), said)


def _without_refused(judge: Judge, refused: set[str]) -> Judge:
    """Return what judges calls, each by itself where the reference takes not all; those it refuses are noted."""

    def judged(texts: Sequence[str], laws: Sequence[Law]) -> Sequence[Verdict]:
        try:
            return judge(texts, laws)
        except (TypeError, ValueError):  # what an audit says of its references
            if len(texts) > 1:
                return [verdict for text in texts for verdict in judged([text], laws)]
        refused.update(texts)
        return ()

    return judged


def _ended(ends: Ends, tried: list[str], profile: Profile, seed: int) -> dict[str, End]:
    """Return how each call ends."""
    found = apart(lambda: [ends(text) for text in tried], profile, seed)
    if isinstance(found, Finding):  # one of them ends the process, or hangs: each is tried by itself
        alone = (apart(partial(ends, text), profile, seed) for text in tried)
        found = [End.REFUSED if isinstance(one, Finding) else one for one in alone]
    return dict(zip(tried, found, strict=True))


def _end(function: Callable[..., Any], refer: Refer, seed: int, device: str, text: str) -> End:
    """Return how a call ends."""
    try:
        case = read_case(text, seed=seed, device=device)
        subject, (case,) = subject_of(function, (case,))
        referred = refer(subject, (case,))
        args, kwargs = tree_map(_trained, (case.args, dict(case.kwargs)))
        numbers = [t for t in tree_leaves(subject.call(*args, **kwargs)) if _is_real(t)]
        given = [t for t in tree_leaves((args, kwargs)) if _is_real(t) and t.requires_grad]
        for call in filter(None, (referred.primal, referred.surrogate)):
            call(*args, **kwargs)
    except Exception:
        return End.REFUSED
    try:
        if sloped := [t for t in numbers if t.requires_grad]:
            torch.autograd.grad(sloped, given, [torch.ones_like(t) for t in sloped], allow_unused=True)
    except Exception:
        return End.RAISES
    if not numbers:
        return End.REFUSED
    return End.FINITE if all(bool(t.isfinite().all()) for t in numbers) else End.INFINITE


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _trained(value: Any) -> Any:
    return value.detach().clone().requires_grad_() if _is_real(value) else value


def _smallest(
    text: str,
    judge: Judge,
    law: Law,
    ends: Ends,
    profile: Profile,
    seed: int,
) -> str:
    """Return the smallest call that still breaks a law, one size after the other."""
    left = SMALLER
    while left > 0:
        tried = list(islice(smaller(text), left))
        left -= len(tried)
        ended = _ended(ends, tried, profile, seed)
        taken = [text for text in tried if ended[text] in (End.FINITE, End.INFINITE)]
        wrong = [verdict.case for verdict in judge(taken, [law]) if _is_wrong(verdict)] if taken else []
        if not wrong:
            return text
        text = wrong[0]
    return text


def _is_wrong(verdict: Verdict) -> bool:
    """Whether a call shows a mistake; a gradient that is zero where a function saturates or clips is none."""
    found = verdict.finding
    return verdict.status is Status.BROKEN and found.rank != "waste" and "lost" not in found.details
