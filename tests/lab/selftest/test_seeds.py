"""The sweep over seeds: it sees what one seed shows, and what is compiled once is still judged under each."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
import torch
import torch._dynamo

from gradspec._engine._child import available
from gradspec._engine._plan import plan
from gradspec.functions import FUNCTIONS
from gradspec.laws import LAWS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.profile import load_profile
from gradspec_lab.selftest import _seeds, _under_seeds
from gradspec_lab.selftest._diseased_seeds import diseased_specimens, sweep_diseased
from gradspec_lab.specimens import DISEASED, HONEST, NET, SCALE
from gradspec_lab.specimens.diseased import Disease

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not available(), reason="no fork on this machine")]
BY_NAME = {law.name: law for law in LAWS}


def swept(count, specs, laws, **how):
    return _seeds.sweep(count, specs=specs, laws=[BY_NAME[law] for law in laws], **how)


def test_that_a_sound_function_fails_under_no_seed():
    found = swept(3, [SCALE], ["primal", "vjp"], jobs=2)

    assert found["failures"] == []
    assert (found["run"], found["specs"], found["laws"]) == (3, ["scale"], ["primal", "vjp"])
    assert found["verdicts"] == 3 * 2 * found["cases"]
    assert found["tried"] == found["cases"]


def test_that_all_that_is_documented_and_all_that_is_sound_is_swept_unless_told():
    found = swept(1, None, ["primal"], jobs=1, minutes=0)

    assert set(found["specs"]) == {spec.name for spec in (*FUNCTIONS, *OPERATORS, *MODULES, *HONEST)}


def test_that_what_one_seed_shows_is_named_with_the_seed():
    # Wrong where the first number of the case is positive, which some seeds draw and others do not.
    def function(x, factor):
        return SCALE.function(x, factor) * (2.0 if x.flatten()[:1].sum() > 0 else 1.0)

    found = swept(8, [replace(SCALE, name="lucky", function=function, implementation=None)], ["primal"])
    seeds = {line.partition(":")[0] for line in found["failures"] if " · matrix: " in line}

    assert 0 < len(seeds) < 8
    assert all("lucky · primal · matrix: " in line for line in found["failures"] if "matrix" in line)


def test_that_a_gradient_dropped_in_a_compiled_region_is_seen_under_every_seed():
    spec = DISEASED["dropped_under_compile_grad"].spec
    found = swept(3, [spec], ["compile_grad"])

    for seed in range(3):
        assert any(line.startswith(f"seed {seed}: {spec.name} · compile_grad") for line in found["failures"])


def test_that_one_compilation_serves_all_seeds_and_the_compiler_is_itself_again():
    calls, reset = [], torch._dynamo.reset

    def backend(graph, inputs):
        calls.append(graph)
        return graph.forward

    profile = replace(load_profile("quick"), backend=backend)
    check = next(c for c in plan([SCALE], [BY_NAME["compile"]]) if c.case == "matrix")
    statuses, messages = _under_seeds._under_seeds(check, 4, [{} for _ in range(4)], profile)

    assert (len(statuses), messages, len(calls)) == (4, {}, 1)
    assert torch._dynamo.reset is reset


def test_that_a_crash_is_a_failure_and_the_sweep_goes_on():
    def kills(x, factor):
        os.kill(os.getpid(), signal.SIGSEGV)

    found = swept(2, [replace(SCALE, name="kills", function=kills, implementation=None), SCALE], ["primal"])

    assert found["failures"]
    assert all("kills · primal" in line and "SIGSEGV" in line for line in found["failures"])
    assert found["tried"] == found["cases"]


def test_that_fewer_seeds_are_said_and_counted():
    found = swept(12, [NET], ["copies"])

    assert found["at_most"] == {"dynamic_shapes": 10, "export": 10, "exported_operator": 10, "module": 10}
    assert found["verdicts"] == 10 * found["cases"]


def test_that_the_time_ends_a_sweep_and_the_record_says_what_was_left_out():
    found = swept(1, [SCALE], ["primal"], minutes=0)

    assert found["tried"] == 1 < found["cases"]


def test_that_a_part_of_a_name_chooses():
    assert {spec.name for spec in _seeds.sound_specs(["weigh", "polar"])} == {"polar", "weighed"}
    assert set(diseased_specimens(["dropped_under_compile_g"])) == {"dropped_under_compile_grad"}
    assert _seeds.sound_specs(["nonsuch"]) == () == tuple(diseased_specimens(["nonsuch"]))


def test_that_a_disease_is_asked_of_its_own_law_under_every_seed():
    found = sweep_diseased(3, diseased_specimens(["off_by_a_millionth", "dropped_under_compile_grad"]), jobs=2)

    laws = sum(len(DISEASED[name].caught_by) for name in ("off_by_a_millionth", "dropped_under_compile_grad"))
    assert (found["specimens"], found["tried"], found["asked"], found["missed"]) == (2, 2, 3 * laws, [])


@pytest.mark.parametrize("name", ["jvp_not_allowed_in_graph", "decides_by_a_sum", "decides_by_a_value"])
def test_that_what_dynamo_refused_under_one_seed_it_refuses_under_the_next(name):
    found = sweep_diseased(3, diseased_specimens([name]), jobs=1)

    assert (found["tried"], found["missed"]) == (1, [])


@pytest.mark.skipif(torch.cuda.is_available(), reason="it can be noticed here")
def test_that_a_specimen_that_cannot_be_noticed_here_is_not_tried():
    found = sweep_diseased(1, diseased_specimens(["wrong_on_cuda"]), jobs=1)

    assert (found["specimens"], found["tried"], found["rows"]) == (1, 0, [])


def test_that_a_disease_which_its_law_misses_under_a_seed_is_named_with_the_seed():
    # Ill where the first number of the case is positive, which some seeds draw and others do not.
    def function(x, factor):
        return SCALE.function(x, factor) * (2.0 if x.flatten()[:1].sum() > 0 else 1.0)

    def one(make):
        yield next(case for case in SCALE.cases(make) if case.name == "matrix")

    spec = replace(SCALE, name="any", function=function, implementation=None, cases=one)
    found = sweep_diseased(8, {"lucky": Disease(spec=spec, caught_by={"primal": "differs"})}, jobs=1)

    assert (found["asked"], 0 < len(found["missed"]) < 8) == (8, True)
    assert all(line.startswith("seed ") and line.endswith(": lucky · primal") for line in found["missed"])


def test_that_a_specimen_whose_cases_were_not_all_tried_is_said_to_be_untried():
    found = sweep_diseased(1, diseased_specimens(["off_by_a_millionth"]), jobs=1, minutes=0)

    assert (found["specimens"], found["tried"], found["asked"]) == (1, 0, 0)
