"""`audit --all`: every Function of a module, in a table with the most dangerous first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec._registry._laws import select_laws
from gradspec._registry._targets import load, load_namespace, split
from gradspec.cli._audited import audited
from gradspec.cli._output import exit_code
from gradspec.cli._prints import printed_once
from gradspec.cli._say import say
from gradspec.cli._shared import Unusable
from gradspec.findings import ORDER, judge, rank_words
from gradspec.render._remarks import remarks

if TYPE_CHECKING:
    from gradspec.findings import Bar, Judgement
    from gradspec.law import Law
    from gradspec.profile import Profile

#: Behind all that was found: nothing, and that nothing could be asked.
_CLEAN, _UNASKED = len(ORDER), len(ORDER) + 1


@dataclass(frozen=True)
class Row:
    """One Function in the table."""

    name: str
    case: str
    #: The place of its worst finding in the order of danger.
    danger: int
    worst: str
    laws: str
    #: What was found means for the run; None where nothing was asked.
    judgement: Judgement | None = None

    @property
    def order(self) -> tuple[bool, int]:
        """Its place in the table: what fails comes first."""
        return not (self.judgement and self.judgement.fails), self.danger


def audit_all(
    target: str,
    law_names: tuple[str, ...],
    profile: Profile,
    bar: Bar,
    *,
    seed: int,
    jobs: int | None,
    exit_zero: bool,
    calls: Path | None = None,
) -> int:
    """Audit all Functions of a module, or operators of a namespace; print the table, return the exit code.

    Args:
        target: the module, or `module:namespace::`.
        law_names: the laws to ask; unless any is named, all that do not compile.
        profile: how hard.
        bar: what fails.
        seed: of all random numbers.
        jobs: how many processes at a time.
        exit_zero: whether to return 0 whatever is found.
        calls: a folder of kept calls (`gradspec watch --save-cases`); a function without one gets a guessed call.

    Raises:
        Unusable: the target is neither a module nor a namespace, or nothing is in it; or a kept call cannot be read.
    """
    from gradspec._audit._of_module import functions_of, operators_of
    from gradspec.cli import _screen, _tables

    where, name = split(target)
    is_namespace = name.endswith("::")
    if name and not is_namespace:
        raise Unusable(f"--all takes a module, and {target!r} names something in one: write {where}")
    laws = tuple(law for law in select_laws(law_names) if law_names or law.cost != "compile")
    with printed_once():
        if is_namespace:
            load_namespace(where, name)
        functions = operators_of(name) if is_namespace else functions_of(load(where))
        if not functions:
            what = f"no operator {name}NAME is registered" if is_namespace else f"{where!r} defines no Function"
            raise Unusable(f"{what}: name the module that does")
        before = f"{where}:" if where else ""
        kept = _kept_calls(calls)
        rows = []
        for one, function in functions.items():
            names = (f"{before}{one}", one, f"{getattr(function, '__module__', '')}:{one}")
            texts = next((kept[name] for name in names if name in kept), [])
            rows.append(_row(f"{before}{one}", function, texts, laws, profile, bar, seed, jobs))
    rows.sort(key=lambda row: row.order)
    said = [(row.name, row.worst, row.laws, "" if row.danger == _CLEAN else row.case) for row in rows]
    _screen.put(_screen.console(), _tables.audits(said))
    worst = rows[0]
    say(f"All about one of them: gradspec audit {before}{worst.name} --case {worst.case or 'CALL'!r}")
    return exit_code(*filter(None, (row.judgement for row in rows)), exit_zero=exit_zero)


def _kept_calls(folder: Path | None) -> dict[str, list[str]]:
    """Return the calls in a folder as `--case` takes them, by what is called."""
    from gradspec._audit._saved_call import CallError, load_call

    found: dict[str, list[str]] = {}
    for file in [] if folder is None else sorted(folder.glob("*.safetensors")):
        try:
            found.setdefault(load_call(file)[2], []).append(f"@{file}")
        except CallError as error:
            raise Unusable(str(error)) from None
    return found


def _row(
    target: str,
    function: Any,
    kept: list[str],
    laws: tuple[Law, ...],
    profile: Profile,
    bar: Bar,
    seed: int,
    jobs: int | None,
) -> Row:
    from gradspec._audit._of_module import other_cases, suggested_case

    name = split(target)[1]
    cases = kept or list(filter(None, [suggested_case(function, profile, seed)]))
    case = cases[0] if cases else ""
    if not case:
        return Row(name, "", _UNASKED, "not asked", "no call that its signature suggests works: give one with --case")
    try:
        found = audited(target, cases, laws=laws, profile=replace(profile, laws=()), seed=seed, jobs=jobs)
    except Unusable as error:
        return Row(name, case, _UNASKED, "not asked", error.message)
    judgement = judge(found.report, bar)
    if judgement.fails and not kept:
        failing = tuple(law for law in laws if any(law.name in one.found.laws for one in judgement.findings))
        for other in other_cases(function, case, profile, seed):
            again = audited(target, [other], laws=failing, profile=replace(profile, laws=()), seed=seed, jobs=jobs)
            if not judge(again.report, bar).fails:
                said = f"wrong with a guessed call, {case}, and right with {other}: give one of yours with --case"
                return Row(name, case, _UNASKED, "not asked", said)
    asked = [judged for judged in judgement.findings if judged.is_asked]
    worst = [judged.found for judged in asked if judged.fails] or [judged.found for judged in asked]
    if not worst:
        number = len(remarks(found.report)) + len(judgement.findings)
        said = f"{number} remark{'s' * (number != 1)}: audit it alone" if number else ""
        number_of = "a kept call" if len(kept) == 1 else f"{len(kept)} kept calls"
        how = number_of if kept else f"a guessed call: {case}"
        return Row(name, case, _CLEAN, f"nothing found with {how}", said, judgement)
    laws_of = ", ".join(dict.fromkeys(law for one in worst for law in one.laws))
    return Row(name, case, ORDER.index(worst[0].rank), rank_words(worst[0].rank), laws_of, judgement)
