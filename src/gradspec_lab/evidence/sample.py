"""Choose what CI measures again: what a change touches, and a random part of the committed summaries."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gradspec.functions import FUNCTIONS
from gradspec.law import Status, Verdict
from gradspec.laws import LAWS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.render import brief_message
from gradspec.report import Report
from gradspec.text import TEXTS
from gradspec_lab._summary import read_summary
from gradspec_lab.evidence._changed import ROOT, touched
from gradspec_lab.selftest._equivalent import EQUIVALENT
from gradspec_lab.selftest._mutants import mutants
from gradspec_lab.selftest._record import Matrix, Subject, read_matrix
from gradspec_lab.selftest._run import selftest
from gradspec_lab.specimens import DISEASED, HONEST

PEERS = ROOT / "docs" / "records" / "peers.json"
KILLS = ROOT / "docs" / "records" / "kill_matrix.json"
#: Where the published packages are installed.
SITE = ROOT / "build" / "peers" / "site-packages"
Cell = tuple[str, str, str]
Say = Callable[[str], None]


def population() -> Mapping[str, list[str]]:
    """Return the names of what there is to be held to the laws today, in order, by sort."""
    return {
        "honest": [spec.name for spec in HONEST],
        "diseased": list(DISEASED),
        "mutant": [mutant.name for mutant in mutants(FUNCTIONS)],
    }


def not_the_population(kept: Matrix) -> Iterator[str]:
    """Yield a line for each subject that the matrix lacks, or has and there is none of; it measures nothing."""
    for sort, today in population().items():
        names = set(today)
        held = {subject.name for subject in kept.of(sort)}
        yield from (f"kills: {sort} {name} is not in the summary" for name in sorted(names - held))
        yield from (f"kills: {sort} {name} is in the summary, and there is none" for name in sorted(held - names))
    yield from (f"kills: {subject.name} {subject.fault}" for subject in kept.faults)
    killed = {subject.name for subject in kept.subjects if subject.is_killed}
    yield from (
        f"kills: {name} is killed, and has a proof that nothing can tell" for name in sorted(killed & set(EQUIVALENT))
    )


def of_kills(kept: Matrix, names: Sequence[str], seconds: float, say: Say) -> Iterator[str]:
    """Yield what differs of subjects that are measured afresh, until the time is up; the rest is left out, and said."""
    known = {subject.name: subject for subject in kept.subjects}
    asked = [name for name in names if name in known]
    drawn = asked[: max(1, round(seconds * SUBJECTS_A_SECOND))]
    found = selftest(drawn, exactly=True, minutes=seconds / 60).subjects if drawn else ()
    for new in found:
        yield from _differs(known[new.name], new)
    say(f"kills: {len(found)} of {len(asked)} subjects measured")
    done = {subject.name for subject in found}
    if left := [name for name in asked if name not in done]:
        say(f"kills: left out {len(left)}: {', '.join(left[:8])}{' ...' if len(left) > 8 else ''}")


#: How many subjects are measured in a second, at most.
SUBJECTS_A_SECOND = 6


def _differs(old: Subject, new: Subject) -> Iterator[str]:
    was, now = set(old.killed_by), set(new.killed_by)
    gone, come = sorted(was - now), sorted(now - was)
    said = [f"no more killed by {', '.join(gone)}"] * bool(gone) + [f"killed by {', '.join(come)}"] * bool(come)
    rest = replace(old, killed_by=(), stock={}), replace(new, killed_by=(), stock={})
    if said or rest[0] != rest[1]:
        yield f"kills: {old.name} is {' and '.join(said) or 'otherwise than it was'} (the summary says otherwise)"


def drawn_subjects(kept: Matrix, rng: random.Random) -> list[str]:
    """Return the subjects in a random order: specimens and mutants by turns, so that a few are of each sort."""
    piles = [[subject.name for subject in kept.of(sort)] for sort in ("diseased", "mutant", "honest")]
    for pile in piles:
        rng.shuffle(pile)
    weights = [4, 4, 1]
    order: list[str] = []
    while any(piles):
        for pile, weight in zip(piles, weights, strict=True):
            order += [pile.pop() for _ in range(min(weight, len(pile)))]
    return order


def not_planned(kept: Report, site: Path) -> Iterator[str]:
    """Yield each cell that the plan of today has and the summary lacks, or the other way round; it measures nothing."""
    from gradspec_lab.peers.record import planned

    today = {check.cell for check in planned(site)}
    held = {v.cell for v in kept.verdicts}
    yield from (f"peers: {' · '.join(cell)} is not in the summary" for cell in sorted(today - held))
    yield from (f"peers: {' · '.join(cell)} is in the summary, and is not planned" for cell in sorted(held - today))


def of_peers(kept: Report, cells: Sequence[Cell], site: Path) -> Iterator[str]:
    """Yield what differs of cells of published implementations that are measured afresh.

    What was not measured for the summary, as by a limit of time, may be today.
    """
    from gradspec_lab.peers.record import measured

    wanted = set(cells)
    known = {v.cell: _told(v) for v in kept.verdicts if v.status is not Status.NOT_MEASURED}
    for verdict in measured(site, only=wanted).verdicts:
        cell = verdict.cell
        if cell in wanted and cell in known and _told(verdict) != known[cell]:
            was, now = known[cell], _told(verdict)
            yield f"peers: {' · '.join(cell)} was {was[0]} ({was[1]}), is {now[0]} ({now[1]})"


def _told(verdict: Verdict) -> tuple[str, str]:
    status, message = verdict.status, verdict.finding.message
    # Whether a comparison is vacuous the other cases of its spec say, of which only some are drawn.
    return ("holds", "") if status is Status.VACUOUS else (status.value, brief_message(message))


def drawn_cells(kept: Report, count: int, rng: random.Random) -> list[Cell]:
    """Return cells of published implementations, with those more often that say something else than `holds`.

    Half of those of cheap laws are of a few classes, a case for each law. The other half is of classes and laws of
    which some case is an exception, all of their cases alike, so that one that was taken out is drawn as any other. Of
    laws that compile a few classes and laws are drawn, and a case of each.
    """
    cheap = {law.name for law in LAWS if law.cost == "ms"}
    by_law: dict[tuple[str, str], list[Cell]] = {}
    for v in kept.verdicts:
        by_law.setdefault((v.spec, v.law), []).append(v.cell)
    odd = {(v.spec, v.law) for v in kept.verdicts if v.status.is_failure}
    exceptional = [cell for pair in sorted(odd) if pair[1] in cheap for cell in by_law[pair]]
    cells: list[Cell] = []
    for spec in rng.sample(sorted(kept.sheets), len(kept.sheets)):
        if len(cells) < count / 2:
            cells += [rng.choice(found) for (one, law), found in by_law.items() if one == spec and law in cheap]
    cells += rng.sample(exceptional, min(len(exceptional), count // 2))
    compiled = sorted(pair for pair in by_law if pair[1] not in cheap)
    cells += [rng.choice(by_law[pair]) for pair in rng.sample(compiled, min(len(compiled), count // 25))]
    return list(dict.fromkeys(cells))


def homes() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the modules of the laws, and of the specs and the specimens, by name."""
    laws = {law.name: law.check.__module__ for law in LAWS}
    ours = {spec.name: spec.modules[0] for spec in (*FUNCTIONS, *OPERATORS, *MODULES, *TEXTS) if spec.modules}
    return laws, ours


def touched_subjects(kept: Matrix, changed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the laws that a change touches, and the subjects that these kill, or of which the function was changed."""
    of_laws, of_specs = homes()
    laws, specs = list(touched(of_laws, changed)), set(touched(of_specs, changed))
    specimens = {name: sick.spec.modules[0] for name, sick in DISEASED.items() if sick.spec.modules}
    edited = set(touched(specimens, changed))
    subjects = [s.name for s in kept.of("diseased") if edited & {s.name} or set(s.own).intersection(laws)]
    subjects += [mutant.name for mutant in mutants(FUNCTIONS) if mutant.spec.name in specs]
    subjects += [s.name for s in kept.of("mutant") if set(s.killed_by).intersection(laws) and s.name not in subjects]
    return laws, subjects


def sample(seed: int, *, seconds: float, changed: Sequence[str], site: Path = SITE, say: Say = print) -> list[str]:
    """Measure what a change touches and a random sample, and return a line for each cell that differs.

    Args:
        seed: of the draw: a number of the commit.
        seconds: how long about; a third each for what is touched, for kills and for published implementations.
        changed: the files that a change edits.
        site: where the published packages are; they are left out, and said so, where there are none.
        say: takes what was measured and what was left out.
    """
    kills, rng, third = read_matrix(KILLS), random.Random(seed), seconds / 3
    wrong = list(not_the_population(kills))
    laws, subjects = touched_subjects(kills, changed)
    say(f"touched by {len(changed)} files: {len(laws)} laws, {len(subjects)} specimens and mutants")
    rng.shuffle(subjects)
    wrong += of_kills(kills, subjects, third, say)
    wrong += of_kills(kills, drawn_subjects(kills, rng), third, say)
    if site.exists():
        peers = read_summary(PEERS)
        wrong += not_planned(peers, site)
        cells = drawn_cells(peers, round(third * CELLS_A_SECOND), rng)
        say(f"peers: {len(cells)} of {len(peers.verdicts)} cells measured")
        wrong += of_peers(peers, cells, site)
    else:
        say(f"peers: left out, {site} is not there")
    return list(dict.fromkeys(wrong))


#: How many cells of laws that cost milliseconds are measured in a second, about.
CELLS_A_SECOND = 20
