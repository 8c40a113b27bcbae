"""A report in plain text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from textwrap import fill, indent
from typing import TYPE_CHECKING

from gradspec._finding import ALSO, MEANT
from gradspec._one_line import for_log
from gradspec.findings import rank_words
from gradspec.findings._findings import standing
from gradspec.law import Rank, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gradspec.findings import Found, Judgement
    from gradspec.report import Report

#: What a table shows of a verdict, as `gradspec.findings.standing` says it.
Standing = Status | Rank
#: A sign for each, worst first: the order in which a law's verdicts on several cases are read as one.
SIGNS: dict[Standing, str] = {
    Status.ERROR: "!",
    Status.BROKEN: "✗",
    Status.INCONCLUSIVE: "±",
    Status.VACUOUS: "∅",
    Status.QUESTION: "?",
    Rank.WASTE: "△",
    Rank.LIMIT: "△",
    Status.NOT_MEASURED: "○",
    Status.WAIVED: "~",
    Status.REFUSED_AS_DECLARED: "⊘",
    Status.NOT_PROMISED: "-",
    Status.HOLDS: "✓",
    Status.NOT_APPLICABLE: "·",
}

#: A quantity with its type, "gradient of `x`, float64[2, 3]".
_WITH_TYPE = re.compile(r"(.*), (\w+\[[^\]]*\])", re.DOTALL)
_HEADLINES = {
    Status.BROKEN: "{spec} breaks `{law}` on case `{case}`",
    Status.ERROR: "{spec}: `{law}` could not run on case `{case}`",
    Status.INCONCLUSIVE: "{spec}: `{law}` cannot tell on case `{case}`",
    Status.VACUOUS: "{spec}: `{law}` shows nothing on case `{case}`",
    Status.QUESTION: "{spec}: `{law}` asks about case `{case}`",
}


#: The laws of these are not named in a summary.
_UNNAMED = (Status.NOT_MEASURED, Status.REFUSED_AS_DECLARED, Status.NOT_PROMISED, Status.HOLDS, Status.NOT_APPLICABLE)


def words(status: Standing) -> str:
    """Return a status as a reader writes it: "not applicable"; of a rank, "limit of torch"."""
    return rank_words(status).removeprefix("a ") if isinstance(status, Rank) else status.replace("_", " ")


def counts(verdicts: Iterable[Verdict]) -> dict[Standing, int]:
    """Return how many verdicts have each status that occurs, worst first; waste and a limit of torch apart."""
    number = Counter(standing(verdict) for verdict in verdicts)
    return {status: number[status] for status in SIGNS if number[status]}


def failure_text(verdict: Verdict, *, details: bool = False) -> str:
    """Return what a failure says: what broke where, got and expected, the likely cause, and how to run it again.

    Args:
        verdict: a verdict of any status; one that is not a failure says its status and its reason.
        details: add the further facts of the finding.
    """
    return for_log("\n".join(_failure_lines(verdict, details=details)).rstrip())


def finding_text(found: Found, *, details: bool = False) -> str:
    """Return what one cause broke: its worst verdict in full, then the cases, the laws that share it, and the patch.

    Args:
        found: the cause.
        details: add the further facts of the finding.
    """
    verdict = found.verdict
    lines = [failure_text(verdict, details=details)]
    others = [law for law in found.laws if law != verdict.law]
    if others:
        lines.append(_wrapped("  And:    ", ", ".join(others)))
    if len(found.cases) > 1:
        is_told = any("," in case for case in found.cases)  # where a name ends
        lines.append(_wrapped("  Cases:  ", ", ".join(f"`{case}`" if is_told else case for case in found.cases)))
        if found.verdict.finding.likely and not found.is_shown_on_all_cases:
            lines.append(f"          the cause above is shown on `{found.verdict.case}`")
    if found.follows:
        lines.append(_wrapped("  Follow: ", ", ".join(found.follows)))
    if patch := _patch(found):
        lines.append(f"  Write:\n{indent(patch, '    ')}")
    return for_log("\n".join(lines))


def line(found: Found, *, why: bool = False) -> str:
    """Return what was found in one line: "`vmap`, wrong silently: the result differs in 3 of 3 elements"."""
    finding = found.verdict.finding
    laws = ", ".join(f"`{law}`" for law in found.laws)
    cause = f"; likely: {' '.join(finding.likely.split())}" if why and finding.likely else ""
    return f"{laws}, {rank_words(found.rank)}: {' '.join(finding.message.split())}{cause}"


def question(found: Found) -> str:
    """Return a question, and how to answer it, in one line."""
    finding = found.verdict.finding
    return " ".join(filter(None, (*finding.message.split(), *finding.likely.split())))


def _patch(found: Found) -> str:
    """Return what to write for all that this finding says is lacking, each part once."""
    parts = (part for verdict in found.verdicts for part in verdict.finding.details.get("patch", ()))
    return "\n".join(dict.fromkeys(parts))


def _wrapped(label: str, text: str) -> str:
    return fill(text, 100, initial_indent=label, subsequent_indent=" " * len(label))


def reason(verdict: Verdict) -> str:
    """Return a status with its reason on one line: "not applicable: the output has one element".

    Of a law that holds, the smallest mistakes that it would have shown.
    """
    said = " ".join(verdict.finding.message.split()) or _would_show(verdict)
    return ": ".join(filter(None, (words(standing(verdict)), said)))


def _would_show(verdict: Verdict) -> str:
    return "; ".join(
        f"would show the {name} off by a factor of 1 ± {least['gain']:.1e}, or without {_lost(**least)}"
        for name, least in verdict.finding.details.get("would show", {}).items()
    )


def _lost(elements: int, unseen: int, gain: float) -> str:
    if elements == 1:
        return "its one element"
    return f"any of its {elements} elements" if not unseen else f"any of {elements - unseen} of its {elements} elements"


def excused(verdict: Verdict, excuse: str) -> str:
    """Return why a verdict is not a failure, and what it says: "follows from `vjp`: broken: differs in 3 elements"."""
    found = str(verdict.finding.details.get("found", "")) if excuse and verdict.finding.follows else ""
    said = replace(verdict, finding=replace(verdict.finding, message=found)) if found else verdict
    return ": ".join(filter(None, (excuse, reason(said))))


def summary_lines(report: Report) -> Iterator[str]:
    """Yield one line for each spec: "grad_factor on 12 cases: 23 laws hold, 1 broken (vjp)"."""
    for spec in dict.fromkeys(verdict.spec for verdict in report.verdicts):
        verdicts = report.of(spec=spec)
        laws: dict[Standing, list[str]] = {status: [] for status in SIGNS}
        for law in dict.fromkeys(verdict.law for verdict in verdicts):
            laws[next(iter(counts(v for v in verdicts if v.law == law)))].append(law)
        cases = {v.case for v in verdicts if report.laws.get(v.law, {}).get("over", "cases") == "cases"}
        held = laws.pop(Status.HOLDS)
        parts = [f"{len(held)} law{'s' * (len(held) != 1)} {'holds' if len(held) == 1 else 'hold'}"]
        failing = [v for v in verdicts if v.status is Status.BROKEN]
        following = [law for law in laws[Status.BROKEN] if all(v.finding.follows for v in failing if v.law == law)]
        laws[Status.BROKEN] = [law for law in laws[Status.BROKEN] if law not in following]
        for status, names in laws.items():
            named = "" if status in _UNNAMED else f" ({', '.join(names)})"
            parts += [f"{len(names)} {words(status)}{named}"] if names else []
            parts += [f"{len(following)} that follow"] if following and status is Status.BROKEN else []
        over = f" on {len(cases)} case{'s' * (len(cases) != 1)}" if cases else ""
        yield f"{spec}{over}: {', '.join(parts)}"


def specs_by_kind(report: Report) -> list[list[str]]:
    """Return the names of the specs, those of a kind together: each kind has laws of its own."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(verdict.spec for verdict in report.verdicts):
        groups.setdefault(report.sheets.get(name, {}).get("kind", ""), []).append(name)
    return list(groups.values())


def baseline_lines(judgement: Judgement) -> Iterator[str]:
    """Yield what a comparison with a baseline says: how much is new, what is known, and what is mended."""
    known = [judged.found for judged in judgement.findings if judged.is_known]
    new = len(judgement.findings) - len(known)
    yield f"against the baseline: {new} new, {len(known)} known, {len(judgement.mended)} mended"
    for found in known:
        yield f"  known:  {headline(found.verdict)}"
    for verdict in judgement.mended:
        yield f"  mended: {verdict.spec} on `{verdict.law}`, case `{verdict.case}`"


def headline(verdict: Verdict) -> str:
    """Return what a failure is, in one line: which spec breaks which law on which case."""
    text = _HEADLINES.get(verdict.status, f"{{spec}}: `{{law}}` is {words(verdict.status)} on case `{{case}}`")
    return text.format(spec=verdict.spec, law=verdict.law, case=verdict.case)


def _failure_lines(verdict: Verdict, *, details: bool) -> Iterator[str]:
    finding = verdict.finding
    yield headline(verdict)
    yield ""
    for said in _quantity_once(finding.message, finding.argument):
        yield indent(said, "  ")
    index = finding.index if finding.index != "[]" else ""  # of a scalar
    at = f"   at {index}" if index and "\n" not in finding.got else ""
    for label, value in (("got", finding.got and finding.got + at), ("expected", finding.expected)):
        if value:
            yield _labelled(f"      {label:<10} ", value)
    place = str(finding.details.get("place", ""))
    if at == "" and (index or place):
        yield _labelled("      at         ", index or place)
    if also := finding.details.get(ALSO):
        yield _labelled("      also       ", also)
    if details:
        for key, value in finding.details.items():
            if key in (MEANT, ALSO):
                continue
            yield (
                _labelled(f"  {key}: ", str(value))
                if "\n" not in str(value)
                else f"  {key}:\n{indent(str(value), '    ')}"
            )
    yield ""
    if finding.rank:
        yield f"  Rank:   {rank_words(Rank(finding.rank))}"
    if finding.likely:
        yield _labelled("  Likely: ", finding.likely)
    if meant := finding.details.get(MEANT):
        yield _labelled("  Meant?  ", meant)
    if verdict.rerun:
        yield f"  Again:  {verdict.rerun}"


def _quantity_once(message: str, argument: str) -> Iterator[str]:
    """Yield what differs and what it is, "gradient of `x`, float64[3]"; of a named quantity, only its type."""
    quantity, kind = match.groups() if (match := _WITH_TYPE.fullmatch(argument)) else (argument, "")
    if quantity and re.search(rf"(?<!\w){re.escape(quantity)}(?!\w)", message):
        yield f"{message} ({kind})" if kind else message
    else:
        yield from filter(None, (message, argument))


def _labelled(label: str, text: str) -> str:
    return label + indent(text, " " * len(label)).lstrip(" ")
