"""The engine: what it does with a promise of no support, with faults of a spec, with a seed."""

import multiprocessing
import os
import re
import signal
import sys
import time
from dataclasses import replace
from itertools import islice

import pytest
import torch

from gradspec._engine._child import available
from gradspec._engine._plan import plan
from gradspec._engine._session import Session
from gradspec._engine._verify import verify
from gradspec.functions import GRAD_FACTOR
from gradspec.law import HOLDS, Law, Status, broken
from gradspec.laws import LAWS
from gradspec.profile import Profile, ProfileError, load_profile
from gradspec.spec import Case, Effects, FunctionSpec, Supports, Waiver
from gradspec.spec._maker import Maker
from gradspec_lab.specimens import DISEASED, SCALE

BY_NAME = {law.name: law for law in LAWS}


def statuses(spec, law):
    return {v.status for v in verify([spec], [BY_NAME[law]]).verdicts if v.status is not Status.NOT_APPLICABLE}


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (SCALE, r"specs are scale, and not a list of them: write \[scale\]"),
        (torch.autograd.Function, "specs are Function, and not a list of them"),
        ([torch.autograd.Function], "Function is not a spec: write a FunctionSpec of it, or call gradspec.audit"),
    ],
)
def test_what_is_no_list_of_specs_is_refused(specs, message):
    with pytest.raises(TypeError, match=message):
        verify(specs, [BY_NAME["primal"]])


def test_a_refusal_that_was_declared_keeps_the_promise():
    spec = replace(DISEASED["combined_forward"].spec, supports=Supports.all(func_grad=False))

    assert statuses(spec, "func_grad") == {Status.REFUSED_AS_DECLARED}


def test_support_that_was_denied_breaks_the_promise():
    spec = replace(SCALE, supports=Supports.all(func_grad=False))

    assert statuses(spec, "func_grad") == {Status.BROKEN}


@pytest.mark.slow
def test_silence_is_no_refusal():
    spec = replace(DISEASED["dropped_under_compile_grad"].spec, supports=Supports.all(compile_grad=False))

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

    assert re.fullmatch(r"gradient of `x` \(random cotangent\), float64\[2, 3\]", finding.argument)
    assert re.fullmatch(r"\[[01], [0-2]\]", finding.index)
    assert float(finding.got) == -float(finding.expected)
    assert finding.likely == "the sign is flipped"
    assert verdict.rerun == "gradspec check specimens:SPEC --law vjp --case matrix --seed 3"


@pytest.mark.slow
def test_one_seed_gives_one_report():
    def first_case(spec):
        return replace(spec, cases=lambda make: islice(spec.cases(make), 1))

    specs = [first_case(SCALE), first_case(DISEASED["clipping_backward"].spec)]
    told, again = (verify(specs, seed=1).verdicts for _ in range(2))
    assert told == again
    assert {v.law for v in told} == {law.name for law in LAWS if law.judges("function")}


def test_verification_leaves_the_callers_random_state_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    verify([SCALE], [BY_NAME["vjp"]])

    assert torch.rand(3).tolist() == expected.tolist()


def test_two_specs_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two specs are named 'scale'"):
        plan([SCALE, SCALE])


def test_a_name_that_is_shown_as_another_is_refused():
    with pytest.raises(ValueError, match=r"the name of a spec is 'a\\\\u202eb', with characters that nobody sees"):
        plan([replace(SCALE, name="a\u202eb")])
    steering = replace(SCALE, cases=lambda make: iter([Case(name="red\x1b[31m", args=(make(1), 1.0))]))
    with pytest.raises(ValueError, match="the name of a case of spec 'scale' is"):
        plan([steering])


def test_two_cases_of_one_name_are_refused():
    spec = replace(SCALE, cases=lambda make: iter([Case(name="a", args=(make(1), 1.0))] * 2))

    with pytest.raises(ValueError, match="two cases named 'a'"):
        plan([spec])


def test_a_profile_chooses_laws_and_may_not_name_an_unknown_one():
    chosen = plan([SCALE], profile=Profile(name="mine", laws=("vjp", "primal")))

    assert {check.law.name for check in chosen} == {"vjp", "primal"}
    with pytest.raises(ValueError, match="unknown law 'no_such_law'"):
        plan([SCALE], profile=Profile(name="mine", laws=("no_such_law",)))


def test_laws_are_given_by_name_too():
    report = verify([SCALE], laws=["vjp", *[law for law in LAWS if law.name == "primal"]])

    assert list(report.laws) == ["vjp", "primal"]
    with pytest.raises(ValueError, match="gradspec has no law 'primer': did you mean 'primal'"):
        verify([SCALE], laws=["primer"])


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
    assert first.tolist() == [[round(x, 3) for x in row] for row in first.tolist()]
    assert Maker(6, "cpu")(4, 4).tolist() != first.tolist()


def test_tensors_of_a_case_are_normal_without_ties_and_away_from_the_usual_kinks():
    many = Maker(0, "cpu")(100, 100)

    assert abs(many.mean()) < 0.05
    assert abs(many.std() - 1) < 0.05
    assert many.unique().numel() == many.numel()
    for seed in range(200):
        few = Maker(seed, "cpu")(8)
        assert few.unique().numel() == 8
        assert not (few.abs() == 1).any()
        assert few.all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"wrt": ("z",)}, "'z' is not a parameter of primal"),
        ({"surrogate": lambda x: x}, "take different arguments"),
        ({"function": 3}, "function is 3, which cannot be called"),
        ({"wrt": "x"}, "wrt is the text 'x': write a tuple, as ('x',)"),
        ({"supports": {"vmap": True}}, "supports is {'vmap': True}: write Supports(vmap=True)"),
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
    assert (held.name, held.documented, held.differences, held.autograd_function) == (
        "theirs",
        (),
        (),
        SCALE.autograd_function,
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_profile_for_a_device_that_is_not_there_is_refused_at_once():
    with pytest.raises(ProfileError, match="needs a CUDA device, and torch finds none"):
        plan([SCALE], profile=load_profile("cuda"))


def waiving(spec, law):
    return replace(spec, waivers=(Waiver(law=law, case="matrix", reason="it is known, and accepted"),))


def test_a_broken_law_that_is_waived_says_why():
    spec = waiving(DISEASED["off_by_a_millionth"].spec, "vjp")
    report = verify([spec], [BY_NAME["vjp"]], case="matrix")

    assert [v.status for v in report.verdicts] == [Status.WAIVED]
    assert report.verdicts[0].finding.message == "it is known, and accepted"
    assert "differs" in report.verdicts[0].finding.details["waived"]
    assert report.failures == ()


def test_a_waiver_that_nothing_needs_is_an_error():
    (verdict,) = verify([waiving(SCALE, "vjp")], [BY_NAME["vjp"]], case="matrix").verdicts

    assert verdict.status is Status.ERROR
    assert "the law holds, and the spec waives it (it is known, and accepted)" in verdict.finding.message


def test_a_waiver_of_one_case_leaves_the_others():
    spec = waiving(DISEASED["off_by_a_millionth"].spec, "vjp")

    assert Status.BROKEN in {v.status for v in verify([spec], [BY_NAME["vjp"]]).verdicts}


@pytest.mark.parametrize(
    ("waiver", "message"),
    [
        (Waiver(law="vpj", case="matrix", reason="typing"), "waives the unknown law 'vpj'"),
        (Waiver(law="vjp", case="matrix", reason=" "), "waives 'vjp' without a reason"),
        (Waiver(law="vjp", case="matrx", reason="typing"), "waives 'vjp' on the unknown case 'matrx'"),
    ],
)
def test_a_waiver_of_nothing_or_without_a_reason_is_refused(waiver, message):
    with pytest.raises(ValueError, match=message):
        verify([replace(SCALE, waivers=(waiver,))])


def killing(x, factor):
    os.kill(os.getpid(), signal.SIGSEGV)


def hanging(x, factor):
    time.sleep(600)


def exiting(x, factor):
    os._exit(3)


def leaving(x, factor):
    sys.exit("out")


@pytest.mark.skipif(not available(), reason="no fork on this machine")
@pytest.mark.parametrize(
    ("function", "status", "message"),
    [
        (killing, Status.BROKEN, "the interpreter died of SIGSEGV"),
        pytest.param(hanging, Status.NOT_MEASURED, "no answer, and asleep for more than 1 s", marks=pytest.mark.slow),
        (exiting, Status.BROKEN, "the function ended the interpreter, with exit code 3"),
        (leaving, Status.BROKEN, "raised SystemExit: out"),
    ],
)
def test_a_function_that_takes_the_interpreter_with_it_is_a_verdict_and_the_run_goes_on(function, status, message):
    profile = replace(load_profile("quick"), time_limit=1.0)
    bad = replace(SCALE, name="bad", function=function, implementation=None)
    report = verify([bad, SCALE], [BY_NAME["global_state"]], profile, case="matrix")

    assert [(v.spec, v.status) for v in report.verdicts] == [("bad", status), (SCALE.name, Status.HOLDS)]
    finding = report.verdicts[0].finding
    assert finding.details.get("found", finding.message) == message


def test_what_a_function_does_to_the_process_is_undone_without_a_child_too():
    relu, dtype = torch.nn.functional.relu, torch.get_default_dtype()
    specs = [DISEASED["patches_torch"].spec, DISEASED["changes_the_default_dtype"].spec]
    verify(specs, [BY_NAME["vjp"]], isolate=False)

    assert torch.nn.functional.relu is relu
    assert torch.get_default_dtype() is dtype


def test_the_report_is_the_same_with_and_without_a_child():
    laws = [BY_NAME[name] for name in ("primal", "vjp", "vmap", "cotangent_layout")]
    specs = [SCALE, DISEASED["sign_flipped"].spec]
    inside, outside = (verify(specs, laws, isolate=isolate).verdicts for isolate in (False, True))

    assert [(v.spec, v.law, v.case, v.finding) for v in inside] == [(v.spec, v.law, v.case, v.finding) for v in outside]


def test_a_law_is_judged_alike_in_any_order():
    # As a distributed test run asks for it: without the laws before it.
    spec = replace(SCALE, function=raising, implementation=None)
    profile = load_profile("quick")
    checks = plan([spec], [BY_NAME["primal"], BY_NAME["vjp"]], profile, case="matrix")
    with Session(checks, profile) as session:
        assert session.run(checks[1]).status is Status.NOT_MEASURED


@pytest.mark.skipif(not available(), reason="no fork on this machine")
def test_the_report_is_the_same_for_any_number_of_jobs():
    laws = [BY_NAME[name] for name in ("primal", "vjp", "batched_cotangent")]
    specs = [SCALE, DISEASED["sign_flipped"].spec, replace(SCALE, name="kills", function=killing, implementation=None)]
    said = []
    one, three = (verify(specs, laws, jobs=jobs, progress=lambda *now: said.append(now)) for jobs in (1, 3))

    assert [(v.spec, v.law, v.case, v.finding) for v in one.verdicts] == [
        (v.spec, v.law, v.case, v.finding) for v in three.verdicts
    ]
    assert said[-1] == (len(one.verdicts), len(one.verdicts), "done")


def test_an_interrupt_ends_the_run_and_its_children():
    def interrupt(done, total, _):
        if 2 <= done < total:  # two checks may end between two calls, so that no call says 2
            raise KeyboardInterrupt

    before = set(multiprocessing.active_children())
    with pytest.raises(KeyboardInterrupt):
        verify([SCALE], [BY_NAME["primal"], BY_NAME["vjp"]], jobs=2, progress=interrupt)
    assert set(multiprocessing.active_children()) <= before  # a child of another test may have ended meanwhile


def test_the_class_behind_an_apply_is_looked_into_without_being_named():
    class Unreduced(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, b):
            return x + b

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar, y_bar  # b is smaller than y: torch repairs it in silence

    def add(x, b):
        return x + b

    spec = FunctionSpec(
        name="unreduced",
        function=Unreduced.apply,
        primal=add,
        surrogate=add,
        wrt=("x", "b"),
        cases=lambda make: iter([Case(name="broadcast", args=(make(2, 3), make(3)))]),
        supports=Supports.all(),
    )

    assert spec.autograd_function is Unreduced
    assert statuses(spec, "raw_returns") == {Status.BROKEN}
    assert replace(spec, function=add).autograd_function is None
    assert replace(spec, function=add, implementation=Unreduced).autograd_function is Unreduced


def test_a_primal_whose_arguments_cannot_be_read_is_refused_with_what_to_write():
    with pytest.raises(ValueError, match="spec 'scale': Python cannot read the arguments of primal: write a function"):
        replace(SCALE, primal=torch.exp)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (lambda *xf: xf[0] * xf[1], "'x' is not a parameter of primal"),
        (
            lambda x, **f: f["f"] * x,
            "and 'f' takes any: write primal without",
        ),
    ],
)
def test_a_primal_whose_arguments_have_no_names_is_refused(form, said):
    with pytest.raises(ValueError, match=said):
        replace(SCALE, primal=form, surrogate=form)
