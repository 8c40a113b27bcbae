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
from gradspec.law import Law
from gradspec.laws import LAWS
from gradspec.profile import Profile, device_name, load_profile
from gradspec.spec._kinds import maker_of
from gradspec_lab._tree import files_key, is_of_this_tree
from gradspec_lab.selftest._judging import Task, _Run
from gradspec_lab.selftest._mutants import STAGES, mutants, warm_up
from gradspec_lab.selftest._record import Matrix, Subject
from gradspec_lab.selftest._workers import run_items
from gradspec_lab.specimens import DISEASED, HONEST

#: How many seconds lie between two times that a run saves what it has.
BETWEEN = 30.0
#: progress(done, total, what came last)
Progress = Callable[[int, int, str], None]


def selftest(
    names: Sequence[str] = (),
    *,
    laws: Sequence[Law] = LAWS,
    exactly: bool = False,
    specimens: bool = True,
    mutated: bool = True,
    stock: bool = False,
    seed: int = 0,
    profile: Profile | None = None,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Progress | None = None,
    save: Callable[[Matrix], None] | None = None,
    known: Matrix | None = None,
) -> Matrix:
    """Hold specimens and mutants to the laws.

    Args:
        names: words; only what has one of them in its name is run. All of it unless told.
        laws: to which they are held.
        exactly: take them for whole names.
        specimens: whether the sound and the diseased specimens are run.
        mutated: whether the mutants are run.
        stock: whether torch's own checkers are asked about the specimens too.
        seed: of all random numbers.
        profile: how hard; `quick` unless told.
        jobs: in how many processes; as many as there are processors, unless told.
        minutes: when to stop; the matrix then holds what was tried, in an order in which no function comes first.
        progress: called after each subject.
        save: called twice a minute with the matrix as far as it has come.
        known: an earlier matrix: what it holds is not measured again, if it is of the same files, versions and seed.

    Raises:
        ValueError: nothing has one of these names.
    """
    import torch._dynamo  # noqa: F401 - imported here, each child has it: it takes seconds

    profile, jobs = profile or load_profile("every-case"), jobs or processors()
    every = list(mutants(FUNCTIONS))
    population = {"honest": len(HONEST), "diseased": len(DISEASED), "mutant": len(every)}
    facts = provenance(device=device_name(profile.device), seed=seed, profile=asdict(profile), files=files_key())
    kept = known.subjects if known is not None and is_of_this_tree(known.provenance, facts) else ()
    run = _Run(laws, maker_of, profile, seed, stock)
    tasks: dict[str, Task] = {}
    if specimens:
        tasks |= {spec.name: run.specimen(spec, "honest", {}) for spec in HONEST}
        for name, sick in DISEASED.items():
            spec = replace(sick.spec, name=name)
            tasks[name] = run.specimen(spec, "diseased", sick.caught_by)
    if mutated:
        tasks |= {mutant.name: run.mutant(mutant) for mutant in every}
    asked = set(names) if exactly else {name for name in tasks if not names or any(word in name for word in names)}
    chosen = {name: task for name, task in tasks.items() if name in asked}
    if not chosen:
        raise ValueError(f"no specimen and no mutant is named {', '.join(map(repr, names))}")
    found = {one.name: one for one in kept if one.name in tasks and (one.stock or not stock or not _has_stock(one))}
    order, started = [name for name in chosen if name not in found], time.monotonic()
    for spec in {mutant.spec.name: mutant.spec for mutant in every if mutant.name in order}.values():
        warm_up(spec, laws, profile, maker_of, seed=seed)
    random.Random(seed).shuffle(order)
    done, saved = 0, time.monotonic()

    def so_far() -> Matrix:
        return Matrix(
            provenance=facts | {"stages": list(STAGES)},
            laws=tuple(law.name for law in laws),
            population=population,
            subjects=tuple(found[name] for name in tasks if name in found),
            measured=done,
        )

    def take(subject: Subject) -> None:
        nonlocal done, saved
        found[subject.name] = subject
        done += 1
        if progress:
            progress(done, len(order), subject.name)
        if save and time.monotonic() > saved + BETWEEN:
            saved = time.monotonic()
            save(so_far())

    if order:
        run_items(
            lambda name: chosen[name](), order, take, jobs=jobs, on=lambda: time.monotonic() <= started + 60 * minutes
        )
    if known is not None and not done and len(found) == len(known.subjects):
        facts |= {name: known.provenance[name] for name in ("date", "commit")}
    return so_far()


def _has_stock(subject: Subject) -> bool:
    """Whether torch's own checkers can be asked about it."""
    return subject.sort != "mutant" and subject.group in ("function", "operator")
