"""Messages for a function whose plain call leaves nothing to judge: what happened, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from gradspec._audit._device import on_device
from gradspec._audit._found import Audit, with_remarks
from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec._engine._verify import blank
from gradspec._one_line import in_short
from gradspec._place import place_of
from gradspec._record import Source
from gradspec.law import Finding, Law, Rank, Status, Verdict, broken, shown
from gradspec.laws import LAWS
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import Accuracy, Case, FunctionSpec, Spec

#: What a message of torch holds, and what to do then.
_REMEDIES = {
    "and no tensor in it": "let it return a tensor for this call, whether or not a gradient is asked for",
    "SystemExit": "it ends the interpreter with sys.exit()",
    "may not alias any inputs to this custom operator": "return a copy of an argument, as `x.clone()`",
    "You must implement either the backward or vjp": "write its `backward`: an audit judges the gradient of that",
}

#: What torch says of gradients that fit no argument, or are none, and what to do.
_REFUSED_BY_TORCH = {
    "returned a gradient different than None at position": "return None for what is no tensor in the call, as a bias "
    "that is None",
    "returned an incorrect number of gradients": "return as many as the call gives arguments to forward",
    "returned an invalid gradient at index": "return each gradient in the shape of its argument",
    "expected Variable or None": "return tensors, and None where there is no gradient",
}
#: What an expression of Python raises by itself.
_MISTAKES = (TypeError, AttributeError, LookupError, NameError)


def check_asked(function: object, accuracy: object) -> None:
    """Refuse a spec in the place of a function, and an accuracy that is none.

    Raises:
        TypeError: it is so.
    """
    if isinstance(function, Spec):
        raise TypeError(f"function cannot be called: it is the spec of {function.name!r}, which verify([spec]) takes")
    if accuracy is not None and not isinstance(accuracy, Accuracy):
        raise TypeError(f"accuracy is {in_short(accuracy)}: write Accuracy(rtol=1e-8)")


def refused_call(measured: Measured) -> Finding:
    """Return the finding that a plain call, or its backward pass, raises, or returns what cannot be added."""
    if measured.no_arithmetic:
        message = f"it returns {measured.no_arithmetic} with a gradient, and torch adds no numbers of that dtype"
        return Finding(status=Status.ERROR, message=message, likely="audit a function that returns it as float32")
    if measured.refused is not None:
        return measured.refused
    likely = _remedy(measured.raised, _REMEDIES) or "give arguments that the function takes"
    return Finding(status=Status.ERROR, message=f"a plain call raises {measured.raised}", likely=likely)


#: What is said in the place of a gradient that nothing can be compared with.
_KEEPS_STATE = Finding(
    status=Status.VACUOUS,
    message=(
        "the gradient is not judged: the function keeps state, and two calls with the same arguments differ, so do "
        "those of torch.utils.checkpoint, which runs forward again for backward"
    ),
    likely="audit a core that takes the state as an argument, or give a reference",
)


#: What is said where the values of two calls agree, and their gradients do not.
_MOVES = broken(
    "the gradients of two calls with the same arguments differ, though their values agree",
    likely="backward keeps something between calls: a counter, a buffer, what an earlier call has left on the class",
    rank=Rank.WRONG,
)


def with_unjudged(report: Report, spec: str, cases: Sequence[Case], laws: Sequence[Law], measured: Measured) -> Report:
    """Return the report of a function that keeps state, which says that its gradient is not judged.

    Args:
        report: what the laws found that compare no two calls.
        spec: the name of the function.
        cases: its calls.
        laws: those that were asked for.
        measured: what plain calls show.
    """
    said = _KEEPS_STATE if measured.stateful else _MOVES
    asked = {law.name: law.sheet for law in laws if law.name == "surrogate"}
    verdicts = (Verdict(spec=spec, law=law, case=case.name, finding=said) for law in asked for case in cases)
    return replace(report, verdicts=(*verdicts, *report.verdicts), laws={**asked, **report.laws})


def refused_backward(error: BaseException) -> Finding:
    """Return the finding that the backward pass of a plain call raises, where forward does not.

    It is the function's failure where torch says so of what backward returns, or where a line of its own does what
    Python cannot, as with the None that stands for a tensor. Anything else may be a refusal that is meant, or come of
    the call.
    """
    said, place = shown(error), place_of(error)
    message, details = f"the backward pass of a plain call raises {said}", {"raised": said, "place": place}
    likely = _remedy(said, _REFUSED_BY_TORCH)
    if likely or (place and isinstance(error, _MISTAKES)):
        return broken(message, likely=likely, rank=Rank.REFUSED, details=details)
    return Finding(status=Status.ERROR, message=message, likely=_remedy(said, _REMEDIES), details=details)


def _remedy(said: str, remedies: Mapping[str, str]) -> str:
    return next((remedy for words, remedy in remedies.items() if words in said), "")


#: What to do where a call runs on a device, and not on the CPU.
ON_CUDA = "on a CUDA device it runs: put the tensors of the call there, or give the option --device cuda"


def runs_on_cuda(subject: Subject, cases: Sequence[Case]) -> bool:
    """Whether there is a CUDA device, and a call of the CPU runs there."""
    if not torch.cuda.is_available():
        return False
    try:
        for case in cases:
            there = on_device(case, "cuda")
            subject.call(*there.args, **there.kwargs)
    except Exception:
        return False
    return True


_IN_A_CALL = "in a plain call or its backward pass"


def ended_call(found: Finding, *, elsewhere: bool) -> Finding:
    """Return the finding that the process of the plain calls died, or gave no answer, forward or backward.

    Args:
        found: how it ended.
        elsewhere: whether the call itself has answered, and only others like it have not.
    """
    where = "with other numbers in its arguments; the call as it is answers" if elsewhere else ""
    message = found.message if "own" in found.details else f"{found.message}, {where or _IN_A_CALL}"
    if elsewhere:
        found = replace(found, likely="a loop that does not end where it does not converge: bound its iterations")
    status = found.status if found.is_cut_off else Status.ERROR
    return replace(found, status=status, message=message)


def refused(
    spec: FunctionSpec,
    finding: Finding,
    profile: Profile,
    seed: int,
    paths: dict[str, str] | None = None,
    given: Mapping[str, Source] | None = None,
    *,
    on: str = "",
) -> Audit:
    """Return the audit of a function whose plain call gives nothing: one verdict, on the first case or `on`."""
    told_by = "surrogate" if finding.status is Status.BROKEN else "primal"
    law = next(law for law in LAWS if law.name == told_by)
    case = on or next(case.name for case in spec.cases(None))  # type: ignore[arg-type]  # its tensors are its own
    verdicts = (Verdict(spec=spec.name, law=law.name, case=case, finding=finding),)
    report = blank([spec], [law], profile, seed=seed, paths=paths, given=given)
    return Audit(report=with_remarks(replace(report, verdicts=verdicts), spec.name, ()), proposal="")
