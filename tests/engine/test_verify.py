"""The engine: what it does with a promise of no support, with faults of a spec, with a seed."""

import re
from dataclasses import replace

import pytest
import torch

from gradspec._verify import plan, verify
from gradspec.functions import GRAD_FACTOR
from gradspec.law import HOLDS, Law, Status, broken
from gradspec.laws import LAWS
from gradspec.make import Maker
from gradspec.profile import Profile, ProfileError, load_profile
from gradspec.spec import Case, Effects, FunctionSpec, Supports
from specimens import DISEASED, SCALE

BY_NAME = {law.name: law for law in LAWS}


def statuses(spec, law):
    return {v.status for v in verify([spec], [BY_NAME[law]]).verdicts if v.status is not Status.NOT_APPLICABLE}


def test_a_refusal_that_was_declared_keeps_the_promise():
    spec = replace(DISEASED["combined_forward"].spec, supports=Supports(func_grad=False))

    assert statuses(spec, "func_grad") == {Status.REFUSED_AS_DECLARED}


def test_support_that_was_denied_breaks_the_promise():
    spec = replace(SCALE, supports=Supports(func_grad=False))

    assert statuses(spec, "func_grad") == {Status.BROKEN}


def test_silence_is_no_refusal():
    spec = replace(DISEASED["dropped_under_compile_grad"].spec, supports=Supports(compile_grad=False))

    assert Status.BROKEN in statuses(spec, "compile_grad")
    assert Status.REFUSED_AS_DECLARED not in statuses(spec, "compile_grad")


def raising(*_):
    raise RuntimeError("no")


def test_a_case_that_raises_is_an_error_and_what_needs_it_is_not_measured():
    spec = replace(SCALE, function=raising, implementation=None)
    report = verify([spec], [BY_NAME["primal"], BY_NAME["vjp"]], case="matrix")

    assert [(v.law, v.status) for v in report.verdicts] == [
        ("primal", Status.ERROR),
        ("vjp", Status.NOT_MEASURED),
    ]
    assert "RuntimeError: no" in report.verdicts[0].finding.message


def test_cases_that_cannot_be_made_are_an_error():
    (verdict,) = verify([replace(SCALE, cases=raising)], [BY_NAME["primal"]]).verdicts

    assert (verdict.status, verdict.finding.message) == (
        Status.ERROR,
        "the case could not be made: RuntimeError: no",
    )


def test_a_fault_of_the_spec_is_not_blamed_on_the_function():
    spec = replace(SCALE, surrogate=lambda x, factor: x.no_such_method(factor))
    verdict = verify([spec], [BY_NAME["vjp"]], case="matrix").verdicts[0]

    assert verdict.status is Status.ERROR
    assert verdict.finding.message.startswith("the surrogate of the spec raised AttributeError")


def test_a_failure_names_index_got_expected_likely_cause_and_the_command():
    spec = DISEASED["sign_flipped"].spec
    (verdict,) = verify([spec], [BY_NAME["vjp"]], case="matrix", seed=3, paths={spec.name: "specimens:SPEC"}).verdicts
    finding = verdict.finding

    assert re.fullmatch(r"gradient \(random 0 cotangent\) of `x`, float64\[2, 3\]", finding.argument)
    assert re.fullmatch(r"\[[01], [0-2]\]", finding.index)
    assert float(finding.got) == -float(finding.expected)
    assert finding.likely == "the sign is flipped"
    assert verdict.again == "gradspec check specimens:SPEC --law vjp --case matrix --seed 3"


def test_one_seed_gives_one_report():
    def told(seed):
        report = verify([SCALE, DISEASED["clipping_backward"].spec], seed=seed)
        return [replace(v, seconds=0.0) for v in report.verdicts]

    assert told(1) == told(1)


def test_verification_leaves_the_callers_random_state_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    verify([SCALE], [BY_NAME["vjp"]])

    assert torch.rand(3).tolist() == expected.tolist()


def test_two_specs_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two specs are named 'scale'"):
        plan([SCALE, SCALE])


def test_two_cases_of_one_name_are_refused():
    spec = replace(SCALE, cases=lambda make: iter([Case(name="a", args=(make(1), 1.0))] * 2))

    with pytest.raises(ValueError, match="two cases named 'a'"):
        plan([spec])


def test_a_profile_chooses_laws_and_may_not_name_an_unknown_one():
    chosen = plan([SCALE], profile=Profile(name="mine", laws=("vjp", "primal")))

    assert {check.law.name for check in chosen} == {"vjp", "primal"}
    with pytest.raises(ValueError, match="unknown law 'no_such_law'"):
        plan([SCALE], profile=Profile(name="mine", laws=("no_such_law",)))


def test_a_law_of_somebody_else_runs_beside_ours():
    law = Law(
        name="small",
        family="mine",
        statement="|x| < 100",
        check=lambda trial: HOLDS if abs(trial.case.args[0]).max() < 100 else broken("large"),
        doc="Numbers are small.",
    )

    assert {v.status for v in verify([SCALE], [law], case="matrix").verdicts} == {Status.HOLDS}


def test_tensors_of_a_case_are_short_numbers_and_the_same_for_a_seed():
    first, second = (Maker(5, "cpu")(4, 4) for _ in range(2))

    assert first.tolist() == second.tolist()
    assert first.tolist() == [[round(x, 2) for x in row] for row in first.tolist()]
    assert Maker(6, "cpu")(4, 4).tolist() != first.tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"wrt": ("z",)}, "'z' is not a parameter of primal"),
        ({"surrogate": lambda x: x}, "take different arguments"),
        ({"function": 3}, "function is 3, which cannot be called"),
        ({"effects": Effects(writes=("z",))}, "'z' is not a parameter of primal"),
        ({"effects": Effects(writes=("x",))}, "state_after is None: give both, or neither"),
    ],
)
def test_a_spec_that_contradicts_itself_is_refused(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(GRAD_FACTOR, **wrong)


def test_another_implementation_is_held_to_the_promise_without_our_examples():
    held = GRAD_FACTOR.for_(SCALE.function, name="theirs")

    assert isinstance(held, FunctionSpec)
    assert (held.name, held.documents, held.differences, held.implementation) == (
        "theirs",
        (),
        (),
        SCALE.implementation,
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_profile_for_a_device_that_is_not_there_is_refused_at_once():
    with pytest.raises(ProfileError, match="needs a CUDA device, and torch finds none"):
        plan([SCALE], profile=load_profile("cuda"))
