"""Gradients that are lost: of an argument with which the output moves, None or zeros arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradspec._audit._dependence import moves_with, zero_gradient
from gradspec._audit._subject import Subject, has_own_backward
from gradspec._finding import MEANT, QUESTIONS
from gradspec._one_line import listed
from gradspec.explain import are_asked, cut_by, gradient_of, is_stopped, line_by_differences, misplaced, stopped_at
from gradspec.law import Finding, Rank, Reason, Status, Trial, Verdict, broken
from gradspec.laws.tensor._surrogate import SURROGATE
from gradspec.laws.tensor.support._call import Inputs, like, outputs
from gradspec.laws.tensor.support._meant import is_flat
from gradspec.report import Report

#: Where somebody says that a gradient is zero on purpose.
_ZERO = "in the option `zero_gradient` of an audit, or of a spec whose surrogate detaches it"
#: The key under which a lost gradient says that zero is the derivative.
FLAT = "flat"


@dataclass(frozen=True, kw_only=True)
class Lost:
    """An argument of a call that the output moves with, and that gets no gradient."""

    case: str
    name: str
    #: What arrives: "None" or "zeros".
    got: str
    #: Whether this is wrong whatever the author meant: the argument is marked as trained, or nothing gets a gradient.
    is_wrong: bool
    #: Whether it is a parameter of a module that the call is handed.
    is_within: bool = False
    #: Whether the output has a graph at all.
    has_graph: bool = True
    #: Whether zero is its derivative nearly everywhere, and others get a gradient.
    is_flat: bool = False
    #: What cuts the graph, shown by a call without it; None where backward itself returns nothing.
    cut: Reason | None = None
    #: At whose place backward returns it, which takes no gradient; None where it is nowhere.
    misplaced: Reason | None = None
    #: The line that makes it zero, shown by a backward without that mistake, or another argument that decides about it.
    line: Reason | None = None

    @property
    def why(self) -> Reason | None:
        """Why it does not arrive, if a call has shown it."""
        return self.cut or self.misplaced or self.line


def lost_of(subject: Subject, trial: Trial) -> Iterator[Lost]:
    """Yield the arguments that the output of a call moves with, and whose gradient is None, or zero everywhere."""
    inputs, marked = Inputs.of(trial), subject.marked.get(trial.case.name, frozenset())
    if marked:  # what the call freezes is frozen: a backward may give nothing because of that
        inputs = Inputs(inputs.values, tuple(name for name in inputs.wrt if name in marked))
    gradients = {name: gradient_of(trial, inputs, name) for name in inputs.wrt}
    with_graph = any(isinstance(t, Tensor) and t.requires_grad for t in outputs(_called(trial, inputs)))
    is_trained = any(g is not None and bool(g.any()) for g in gradients.values())
    has_backward = subject.implementation is None or has_own_backward(subject.implementation)
    for name, gradient in gradients.items():
        if name in subject.zero or not (marked or has_backward):
            continue
        is_zero = gradient is not None and zero_gradient(trial, inputs, name)
        if not (gradient is None or is_zero) or not moves_with(trial, inputs, name, is_value=True):
            continue
        if gradient is None and is_delivered(trial, inputs, name):
            continue
        flat = is_flat(inputs.closed(trial.spec.function), inputs, name)
        if flat and is_trained and name not in marked:
            continue  # a threshold: its derivative is zero, and what is trained gets its gradient
        cut = cut_by(trial, inputs, name) if gradient is None else None
        elsewhere = misplaced(trial, inputs, name) if gradient is None and with_graph and cut is None else None
        is_lost = (is_zero and not is_trained) or not with_graph  # nothing gets a gradient
        is_wrong = name in marked or elsewhere is not None or (not flat and is_lost)
        yield Lost(
            case=trial.case.name,
            name=name,
            got="zeros" if is_zero else "None",
            is_wrong=is_wrong,
            has_graph=with_graph,
            cut=cut,
            misplaced=elsewhere,
            line=_line(trial, name) if is_zero and is_wrong and not flat else None,
            is_flat=flat and is_trained,
        )


def _line(trial: Trial, name: str) -> Reason | None:
    """Return the line of backward that makes the gradient of an argument zero, where another one makes it right."""
    return line_by_differences(replace(trial, spec=replace(trial.spec, wrt=(name,)))) if are_asked() else None


def is_delivered(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether a backward pass adds to the gradient of an argument by itself, as that of a block which runs again."""
    leaves = inputs.leaves()
    y = tuple(t for t in outputs(trial.spec.function(*inputs.args(leaves))) if t.requires_grad)
    with suppress(Exception):  # an operator without a gradient
        torch.autograd.backward(y, like(y, trial.seed))
    return leaves[name].grad is not None


def stopped_in(subject: Subject, trial: Trial) -> dict[str, str]:
    """Return where a gradient is stopped by name, of the arguments that are not marked as others of the call are.

    The data of a module, which its loss compares with what it makes of them without a graph.
    """
    inputs, marked = Inputs.of(trial), subject.marked.get(trial.case.name, frozenset())
    others = [name for name in inputs.wrt if marked and name not in marked]
    gradients = {name: gradient_of(trial, inputs, name) for name in others}
    found = {n: g for n, g in gradients.items() if g is not None and is_stopped(trial, inputs, n, g)}
    # A hook may bring back what is stopped, as that of an equilibrium does.
    found = {name: gradient for name, gradient in found.items() if _is_wrong(trial, name)}
    return {name: stopped_at(trial, inputs, name, gradient) for name, gradient in found.items()}


def _is_wrong(trial: Trial, name: str) -> bool:
    """Whether the gradient of an argument is not the derivative of forward."""
    alone = replace(trial, spec=replace(trial.spec, wrt=(name,), zero_gradient=()))
    return SURROGATE.check(alone).status is Status.BROKEN


def with_stopped(report: Report, stopped: Mapping[str, str]) -> Report:
    """Return a report in which the law `surrogate` asks about the parts of gradients that are stopped by name."""
    if not stopped:
        return report
    it = "them" if len(stopped) > 1 else "it"
    where = ", ".join(dict.fromkeys(filter(None, stopped.values()))) or "name, as by detach()"
    asked = (
        f"Is it meant that a part of the gradient of {listed(list(stopped))} is stopped by {where}? If so, say what is "
        f"left: the option `reference` or `surrogate` of an audit; if not, it is a mistake. A call that marks {it} as "
        "trained is judged."
    )
    finding = Finding(status=Status.QUESTION, message=asked, details={"stopped": list(stopped)})
    verdicts = (
        replace(v, finding=finding) if v.law == "surrogate" and v.status is Status.HOLDS else v for v in report.verdicts
    )
    return replace(report, verdicts=tuple(verdicts))


def _called(trial: Trial, inputs: Inputs) -> object:
    return trial.spec.function(*inputs.args(inputs.leaves()))


def with_lost(
    report: Report, lost: tuple[Lost, ...], uncalled: Mapping[str, Finding], law: str = "surrogate"
) -> Report:
    """Return a report in which a law says which gradients are lost, or asks about them.

    Args:
        report: what the laws found.
        lost: the gradients that are lost.
        uncalled: by the name of a case, what is said of a backward that torch does not call in it.
        law: its name; with a reference that of `vjp`.
    """
    verdicts = []
    # Whether another argument requires a gradient may decide about one.
    decided = {(v.case, _named(v)): v.finding.reason for v in report.of(law="needs_input_grad") if v.finding.reason}
    for verdict in report.verdicts:
        if verdict.law != law or verdict.status is Status.ERROR:
            verdicts.append(verdict)
            continue
        here = (one for one in lost if one.case == verdict.case)
        mine = [replace(one, line=one.line or decided.get((one.case, one.name))) for one in here]
        finding = _said(mine, verdict.finding) if mine else verdict.finding
        verdicts.append(replace(verdict, finding=uncalled.get(verdict.case, finding)))
    return replace(report, verdicts=tuple(verdicts))


def _named(verdict: Verdict) -> str:
    """Return the argument of which a law gets no gradient: `w` of "gradient of `w` (the only one required)"."""
    return verdict.finding.argument.partition("`")[2].partition("`")[0] if verdict.finding.got == "None" else ""


def asked_of_a_program(report: Report) -> Report:
    """Return the report of calls that a program made: what it marks is what it computes with, and nobody's word.

    Where zero is the derivative of what loses its gradient, as of the input of a threshold that learns, it is asked.
    """
    verdicts = (
        replace(verdict, finding=_asked_of_flat(verdict.finding.details["lost"]))
        if verdict.status is Status.BROKEN and verdict.finding.details.get(FLAT)
        else verdict
        for verdict in report.verdicts
    )
    return replace(report, verdicts=tuple(verdicts))


def _asked_of_flat(names: list[str]) -> Finding:
    it, get = ("them", "get") if len(names) > 1 else ("it", "gets")
    asked = (
        f"Is it meant that {listed(names)} {get} no gradient? Forward is flat nearly everywhere in {it}, where a "
        f"derivative is 0. If so, name {it} {_ZERO}; if not, a "
        "straight-through gradient is lost."
    )
    return Finding(status=Status.QUESTION, message=asked, details={"lost": names})


def _said(lost: list[Lost], before: Finding) -> Finding:
    """Return what is said of a call with lost gradients, in place of what the law said."""
    wrong = [one for one in lost if one.is_wrong]
    if wrong:
        names, words = [one.name for one in wrong], _words(wrong)
        also = f"; {before.message}" if before.status is Status.BROKEN else ""
        meant = f"if it is, name `{names[0]}` {_ZERO}"
        return broken(
            f"{_sentence(wrong)}{also}",
            argument=f"gradient of {listed(names)}",
            got=wrong[0].got,
            expected="a gradient",
            likely=words or (before.likely if also else ""),
            reason=_reason(wrong),
            rank=Rank.WRONG,
            details={"lost": names}
            | ({FLAT: True} if not also and all(one.is_flat for one in wrong) else {})
            | ({} if words or also else {MEANT: meant}),
        )
    if before.status is Status.BROKEN:
        return before
    names = [one.name for one in lost]
    it = "them" if len(names) > 1 else "it"
    asked = f"{'Is' if len(names) == 1 else 'Are'} {listed(names)} trained? {_capital(_sentence(lost))}."
    answer = f"If so, mark {it} (the option `wrt`, or requires_grad=True in the case); "
    answer += f"if not, name {it} {_ZERO}."
    rest = [before.message, before.likely] if before.status is Status.QUESTION else []
    said = " ".join(filter(None, (asked, f"{_capital(_words(lost))}." if _words(lost) else "", answer)))
    return Finding(
        status=Status.QUESTION,
        message=" ".join((said, *rest[:1])),
        likely=" ".join(rest[1:]),
        details={"lost": names} | ({QUESTIONS: 2} if rest else {}),
    )


def _sentence(lost: list[Lost]) -> str:
    """Return what arrives, and of what: "backward returns no gradient for `weight`, and the output moves with it"."""
    it = "them" if len(lost) > 1 else "it"
    groups: dict[str, list[str]] = {}
    for one in lost:
        groups.setdefault(_what_arrives(one), []).append(one.name)
    parts = [words.format(listed(names)) for words, names in groups.items()]
    return f"{' and '.join(parts)}, and the output moves with {it}"


def _what_arrives(one: Lost) -> str:
    if one.cut or one.is_within or not one.has_graph:
        return "no gradient reaches {}"
    return "backward returns zeros everywhere for {}" if one.got == "zeros" else "backward returns no gradient for {}"


def _reason(lost: list[Lost]) -> Reason | None:
    return next((one.why for one in lost if one.why), None)


def _words(lost: list[Lost]) -> str:
    return "; ".join(dict.fromkeys(one.why.words for one in lost if one.why))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
