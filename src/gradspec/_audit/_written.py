"""The proposal of an audit: the text of a spec that says what was found, and what is left to write in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch.nn import Module

from gradspec._audit._agreement import disagreement, imports
from gradspec._audit._apart import apart
from gradspec._audit._case_text import name_in_text
from gradspec._audit._known_forms import UNKNOWN, Guess, guessed
from gradspec._audit._measured import Measured
from gradspec._audit._module_text import module_text
from gradspec._audit._proposal import Proposal
from gradspec._audit._subject import Subject
from gradspec._one_line import listed
from gradspec.law import Finding, Law, Status
from gradspec.profile import Profile
from gradspec.report import Report

_MODULE = "name the class, and write what it is made of into `args` of each case"


def proposed(
    proposal: Proposal, measured: Measured, report: Report, laws: Sequence[Law], profile: Profile, seed: int
) -> tuple[str, tuple[str, ...]]:
    """Return the text of a spec, and what its reader should know.

    Without a named form it promises what the audit took as promised, in other words: both find the same. A form is
    named where a check of the text finds what the audit found.

    Args:
        proposal: what it is written from.
        measured: what plain calls show.
        report: the verdicts of the audit, before causes were looked for.
        laws: the laws of the audit.
        profile: how hard.
        seed: of the tensors and directions.
    """
    if isinstance(proposal.function, Module):
        proposal = replace(proposal, todos=(_MODULE,))
        return module_text(proposal), _remarks(proposal, "")
    proposal = replace(proposal, todos=tuple(_todos(measured)), unshown=tuple(_unshown(report)))
    plain = proposal.text(UNKNOWN)

    def forms_or_why() -> tuple[Guess, str]:
        """Return what forms the function has; where it has none, why the text without them cannot be imported."""
        known = {*proposal.references, *(["surrogate"] if "gradient" in proposal.references else [])}
        forms = guessed(proposal.spec, known) if measured.is_repeatable else UNKNOWN
        return forms, imports(plain, proposal.scope, proposal.constant) if forms == UNKNOWN else ""

    found = apart(forms_or_why, profile, seed)
    if not isinstance(found, Finding) and found[0] == UNKNOWN:
        return plain, _remarks(proposal, found[1])
    if not isinstance(found, Finding):
        text, before = proposal.text(found[0]), _as_in_text(proposal, report)
        asked = (text, proposal.scope, proposal.constant, before, laws, profile, seed)
        if apart(lambda: disagreement(*asked), profile, seed) == "":
            return text, _remarks(proposal, "")
    why = apart(lambda: imports(plain, proposal.scope, proposal.constant), profile, seed)
    return plain, _remarks(proposal, why.message if isinstance(why, Finding) else why)


def promised(subject: Subject, measured: Measured) -> Measured:
    """Return what a spec says of the function: `wrt` has what must get a gradient."""
    lost = {subject.parameter_of(one.name) for one in measured.lost if one.is_wrong}
    named = {*measured.wrt, *measured.hidden, *lost}
    wrt = tuple(name for name in subject.signature.parameters if name in named)
    return replace(measured, wrt=wrt)


def _todos(measured: Measured) -> Iterator[str]:
    """Yield what a spec of a function of this kind needs beside what is in the text."""
    if measured.stateful:
        yield "give what it keeps as an argument: its calls differ, and a spec is of calls that agree"
    for name in dict.fromkeys(one.name for one in measured.lost if not one.is_wrong):
        yield f"say whether `{name}` is trained: then `wrt` names it, not `zero_gradient`, and its gradient is lost"
    if measured.hidden:
        stars = ", ".join(f"*{name}" for name in measured.hidden)
        yield f"hand {listed(measured.hidden)} on as {stars}: no gradient reaches the tensors in a list"


def _unshown(report: Report) -> Iterator[str]:
    """Yield which laws hold on cases that show nothing: an audit takes the calls as they are, a spec needs others."""
    vacuous = {v.law: v.finding.likely for v in report.verdicts if v.status is Status.VACUOUS}
    yield from (f"{likely}, for `{law}`, which shows nothing on these" for law, likely in vacuous.items())


def _remarks(proposal: Proposal, why: str) -> tuple[str, ...]:
    """Return what is left to write, in one sentence, and why the text cannot be imported."""
    left = f"TODO in the proposed spec: {'; '.join(proposal.unknown)}." if proposal.unknown else ""
    return tuple(filter(None, (left, f"The proposed spec cannot be imported: {why}." if why else "")))


def _as_in_text(proposal: Proposal, report: Report) -> Report:
    """Return the report with the names of the cases that the text gives them."""
    names = {case.name: name_in_text(case, proposal.written, proposal.dtype) for case in proposal.cases}
    verdicts = tuple(replace(v, case=names.get(v.case, v.case)) for v in report.verdicts)
    return replace(report, verdicts=verdicts)
