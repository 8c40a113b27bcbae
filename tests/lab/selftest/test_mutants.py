"""The tester of the tester: what a self-test says of a mutant that is caught, of one that is not, and of a crash."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from gradspec.functions import FUNCTIONS, GRAD_FACTOR, GradFactor
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.spec._kinds import maker_of
from gradspec_lab.selftest._equivalent import EQUIVALENT
from gradspec_lab.selftest._judging import subject_of
from gradspec_lab.selftest._mutants import Mutant, judge_mutant, mutants
from gradspec_lab.selftest._mutation import Mutation, before_backward, on_class, on_gradients
from gradspec_lab.selftest._mutations import MUTATIONS
from gradspec_lab.selftest._workers import run_items

PROFILE = load_profile("quick")
CHEAP = [law for law in LAWS if law.name in ("primal", "vjp", "second_order", "keyword_call", "ctx_clean")]
BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}


def outcome(mutation: Mutation, spec=GRAD_FACTOR, cls=GradFactor):
    mutant = Mutant(spec=spec, cls=cls, mutation=mutation)
    return subject_of(mutant, judge_mutant(mutant, CHEAP, PROFILE, maker_of, time_limit=300))


def test_a_mutation_that_changes_nothing_is_reported_as_a_survivor():
    subject = outcome(Mutation(name="unchanged", method="class", change=on_class(lambda cls: None)))

    assert (subject.killed_by, subject.crash, subject.is_killed) == ((), "", False)
    assert subject.fault == "survived, without a proof that nothing can tell"


@pytest.mark.slow
def test_a_mutation_of_what_no_law_of_the_run_looks_at_survives():
    subject = outcome(Mutation(name="prints", method="backward", change=before_backward(lambda c, v: print("here"))))

    assert not subject.is_killed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("value_off_by_a_millionth", "primal"),
        ("sign_flipped", "vjp"),
        ("one_coordinate_off_by_a_millionth", "vjp"),
        ("cotangent_through_data", "second_order"),
        ("input_on_ctx", "ctx_clean"),
        ("positional_only", "keyword_call"),
    ],
)
def test_a_mutation_is_noticed_by_the_law_that_is_about_it(name, law):
    subject = outcome(BY_NAME[name])

    assert law in subject.killed_by
    assert subject.fault == ""


def test_a_crash_counts_with_its_signal():
    died = on_gradients(lambda g, v: os.kill(os.getpid(), signal.SIGSEGV))
    subject = outcome(Mutation(name="dies", method="backward", change=died))

    assert (subject.killed_by, subject.is_killed) == ((), True)
    assert "SIGSEGV" in subject.crash


def test_a_mutant_lives_in_its_own_process_alone():
    outcome(BY_NAME["sign_flipped"])
    x = torch.ones(2, requires_grad=True)
    GradFactor.apply(x, 3.0).sum().backward()

    assert x.grad.tolist() == [3.0, 3.0]


def test_every_function_has_mutants_and_every_proof_is_about_one_of_them():
    names = [mutant.name for mutant in mutants(FUNCTIONS)]

    assert len(set(names)) == len(names) >= 60
    assert {spec.autograd_function.__name__ for spec in FUNCTIONS} <= {name.partition(".")[0] for name in names}
    assert set(EQUIVALENT) <= set(names)


def test_a_function_without_a_gradient_has_no_gradient_to_break():
    names = {mutant.name for mutant in mutants(FUNCTIONS)}

    assert "Values.value_negated" in names
    assert "Values.sign_flipped" not in names


def test_a_function_is_spared_what_would_change_nothing_in_it():
    names = {mutant.name for mutant in mutants(FUNCTIONS)}
    spared = {f"{cls}.{mutation.name}" for mutation in MUTATIONS for cls in mutation.spares}

    assert spared
    assert not spared & names
    assert {name.partition(".")[0] for name in spared} <= {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_share_the_work(jobs):
    made = []
    run_items(lambda n: (n * n, os.getpid()), [1, 2, 3, 4, 5], made.append, jobs=jobs)
    assert sorted(square for square, _ in made) == [1, 4, 9, 16, 25]
    assert (os.getpid() in {pid for _, pid in made}) is (jobs == 1)


def test_a_worker_that_fails_is_said():
    with pytest.raises(RuntimeError, match="a worker ended before its work was done"):
        run_items(lambda n: 1 // n, [1, 0, 2], lambda made: None, jobs=2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_more_is_dealt_once_the_time_is_over(jobs):
    made = []
    run_items(lambda n: n, list(range(50)), made.append, jobs=jobs, on=lambda: False)
    assert made == [0]
