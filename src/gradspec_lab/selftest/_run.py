"""The self-test: sound and diseased specimens and mutants, each held to the laws, and torch's checkers beside them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from gradspec._engine._pool import processors
from gradspec._record import provenance
from gradspec.functions import FUNCTIONS
from gradspec.laws import LAWS
from gradspec.profile import Profile, device_name, load_profile
from gradspec.spec import Spec
from gradspec.spec._kinds import maker_of
from gradspec_lab.selftest._judging import Task, _Run
from gradspec_lab.selftest._mutants import STAGES, mutants, warm_up
from gradspec_lab.selftest._record import Matrix, Subject
from gradspec_lab.selftest._standing import Standing, function_of, sources, specimens_of
from gradspec_lab.selftest._workers import run_items
from gradspec_lab.specimens import DISEASED, HONEST

#: progress(done, total, what came last)
Progress = Callable[[int, int, str], None]


def selftest(
    names: Sequence[str] = (),
    *,
    exactly: bool = False,
    specimens: bool = True,
    mutated: bool = True,
    stock: bool = False,
    seed: int = 0,
    profile: Profile | None = None,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Progress | None = None,
    known: Matrix | None = None,
) -> Matrix:
    """Hold specimens and mutants to the laws.

    Args:
        names: words; only what has one of them in its name is run. All of it unless told.
        exactly: take them for whole names.
        specimens: whether the sound and the diseased specimens are run.
        mutated: whether the mutants are run.
        stock: whether torch's own checkers are asked about the specimens too.
        seed: of all random numbers.
        profile: how hard; `quick` unless told.
        jobs: in how many processes; as many as there are processors, unless told.
        minutes: when to stop; the matrix then holds what was tried, in an order in which no function comes first.
        progress: called after each subject.
        known: an earlier matrix: what it found is not measured again where nothing that can change it has changed.

    Raises:
        ValueError: nothing has one of these names.
    """
    import torch._dynamo  # noqa: F401 - imported here, each child has it: it takes seconds

    profile, jobs = profile or load_profile("quick"), jobs or processors()
    every = list(mutants(FUNCTIONS))
    population = {"honest": len(HONEST), "diseased": len(DISEASED), "mutant": len(every)}
    facts = provenance(device=device_name(profile.device), seed=seed, profile=asdict(profile))
    today = sources()
    standing = Standing.of(known, today, facts, LAWS)
    run = _Run(LAWS, maker_of, profile, seed, stock)
    tasks: dict[str, Task] = {}
    if specimens:
        tasks |= {spec.name: run.specimen(spec, "honest", {}, *_stands(standing, spec)) for spec in HONEST}
        for name, sick in DISEASED.items():
            spec = replace(sick.spec, name=name)
            tasks[name] = run.specimen(spec, "diseased", sick.caught_by, *_stands(standing, spec))
    if mutated:
        for mutant in every:
            home = function_of(mutant.spec.name)
            tasks[mutant.name] = run.mutant(mutant, home, *standing.of_laws(mutant.name, home))
    asked = set(names) if exactly else {name for name in tasks if not names or any(word in name for word in names)}
    chosen = {name: task for name, task in tasks.items() if name in asked}
    if not chosen:
        raise ValueError(f"no specimen and no mutant is named {', '.join(map(repr, names))}")
    found = {name: standing.rows[name] for name in tasks if name not in chosen and standing.is_current(name)}
    found |= {name: standing.rows[name] for name in chosen if standing.is_current(name, stock=stock)}
    order, started = [name for name in chosen if name not in found], time.monotonic()
    for spec in {mutant.spec.name: mutant.spec for mutant in every if mutant.name in order}.values():
        warm_up(spec, LAWS, profile, maker_of, seed=seed)
    random.Random(seed).shuffle(order)
    done = 0

    def take(subject: Subject) -> None:
        nonlocal done
        found[subject.name] = subject
        done += 1
        if progress:
            progress(done, len(order), subject.name)

    if order:
        run_items(
            lambda name: chosen[name](), order, take, jobs=jobs, on=lambda: time.monotonic() <= started + 60 * minutes
        )
    if known is not None and not done and len(found) == len(known.subjects):
        facts |= {name: known.provenance[name] for name in ("date", "commit")}
    return Matrix(
        provenance=facts | {"stages": list(STAGES)},
        sources=today,
        population=population,
        subjects=tuple(found[name] for name in tasks if name in found),
        measured=done,
    )


def _stands(standing: Standing, spec: Spec) -> tuple[str, Subject | None, frozenset[str], bool]:
    """Return what a specimen depends on, what is known of it, and which laws are asked again."""
    home = specimens_of(spec.kind)
    known, moved = standing.of_laws(spec.name, home)
    return home, known, moved, known is not None and bool(known.stock) and not standing.moved("stock")
