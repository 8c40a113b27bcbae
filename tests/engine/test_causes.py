"""One cause is said once: what follows from it, what the form of the class lacks, and what torch does to everybody."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradspec import Case, FunctionSpec, Status, Supports, audit, verify
from gradspec.findings import Bar, findings, judge
from gradspec.law import Finding, Rank, Verdict, broken
from gradspec.laws import LAWS, is_stand_in
from gradspec.render import finding_text
from gradspec.report import Report

BY_NAME = {law.name: law for law in LAWS}
QUICK = [law for law in LAWS if law.judges("function") and law.cost == "ms"]


class Cube(Function):
    """The cube of the tutorial, off by a third."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2 * x**2 * y_bar


class RightCube(Cube):
    """The same form, and the right gradient."""

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * y_bar


class OnceCube(Cube):
    """The right gradient, of which no second one can be had."""

    @staticmethod
    @once_differentiable
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * y_bar


def cases(make):
    yield Case(name="matrix", args=(make(3, 4),))


def spec(cls, **more):
    cube = {"primal": lambda x: x**3, "surrogate": lambda x: x**3}
    more.setdefault("supports", Supports.all())
    return FunctionSpec(name="cube", function=getattr(cls, "apply", cls), wrt=("x",), cases=cases, **cube, **more)


def test_a_wrong_gradient_is_one_finding_and_the_first():
    report = verify([spec(Cube)], QUICK)
    first, *rest = findings(report)

    assert (first.verdict.law, first.rank) == ("vjp", Rank.WRONG)
    assert first.verdict.finding.likely == (
        "every element is off by the factor 0.667; right with "
        "`return 3 * x ** 2 * y_bar` in place of `return 2 * x ** 2 * y_bar` (test_causes.py:34, in backward)"
    )
    assert {"precision", "second_order", "checkpoint", "retained_graph"} <= set(first.follows)
    assert all(f.rank is Rank.REFUSED for f in rest), "nothing else is wrong silently"
    assert len(finding_text(first).splitlines()) < 20


def test_what_follows_from_a_law_that_was_not_run_says_what_it_found_itself():
    def missing(x):
        raise TypeError("no argument for the kernel")

    (alone,) = findings(verify([replace(spec(Cube), implementation=Cube)], [BY_NAME["second_order"]]))
    broken_alone = replace(spec(RightCube), function=missing)
    (raising,) = findings(verify([broken_alone], [BY_NAME["vjp"]]))

    assert "second derivative" in alone.verdict.finding.message
    assert alone.verdict.finding.message.endswith("(this follows from vjp)")
    assert "no argument for the kernel" in raising.verdict.finding.message


class SwappedDot(Function):
    """Each argument is given the other's gradient, and both are computed whoever asks."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a * b).sum(-1)

    @staticmethod
    def backward(ctx, y_bar):
        a, b = ctx.saved_tensors
        return y_bar[:, None] * a, y_bar[:, None] * b


class LazySwappedDot(SwappedDot):
    """The same wrong gradients, each only where it is asked for."""

    @staticmethod
    def backward(ctx, y_bar):
        a, b = ctx.saved_tensors
        return tuple(
            y_bar[:, None] * x if asked else None for x, asked in zip((a, b), ctx.needs_input_grad, strict=True)
        )


class ForgetfulDot(SwappedDot):
    """Both gradients are wrong, and the first one is wrong in another way where the second is frozen."""

    @staticmethod
    def backward(ctx, y_bar):
        a, b = ctx.saved_tensors
        return y_bar[:, None] * a * (2 if ctx.needs_input_grad[1] else 5), y_bar[:, None] * b


class RestlessCube(Cube):
    """Another gradient each time."""

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * y_bar * torch.rand_like(x)


def dot(a, b):
    return (a * b).sum(-1)


def two(make):
    yield Case(name="rows", args=(make(3, 4), make(3, 4)))


@pytest.mark.parametrize(
    ("function", "said"),
    [(SwappedDot, Rank.WASTE), (LazySwappedDot, None), (ForgetfulDot, Rank.WRONG)],
)
def test_a_wrong_gradient_and_a_needless_one_are_two_findings_and_a_wrong_one_is_one(function, said):
    words = {"name": "dot", "primal": dot, "surrogate": dot, "wrt": ("a", "b"), "cases": two}
    report = verify([FunctionSpec(function=function.apply, **words)], QUICK)
    found = {f.verdict.law: f.rank for f in findings(report)}
    assert found["vjp"] is Rank.WRONG
    assert found.get("needs_input_grad") is said


def test_what_a_function_that_is_never_the_same_breaks_follows_from_the_first():
    report = verify([spec(RestlessCube)], QUICK)
    first, *rest = findings(report)

    assert first.verdict.law == "declared_draws"
    assert "cotangent_linearity" in first.follows
    (wrong,) = (f for f in rest if f.verdict.law == "vjp")
    assert {"retained_graph", "checkpoint", "cotangent_layout"} <= set(wrong.follows), "with the noise held still"
    assert {v.status for v in report.of(law="layout")} == {Status.NOT_MEASURED}, "other strides draw for other elements"


def test_neither_of_two_laws_that_raise_the_same_follows_from_the_other_alone():
    def a_number(x):
        return float(x.sum())

    report = verify([replace(spec(RightCube), function=a_number)], [BY_NAME["primal"], BY_NAME["vjp"]])
    first, *_ = findings(report)

    assert (first.verdict.law, first.verdict.finding.message) == ("primal", "the value is no tensor")
    assert first.verdict.finding.got == "a float"
    assert all("this follows" not in found.verdict.finding.message for found in findings(report))


def test_what_one_edit_mends_is_one_finding_with_the_edit():
    report = verify([spec(RightCube)], QUICK)
    (found,) = findings(report)

    assert found.rank is Rank.REFUSED
    assert {"func_grad", "vmap", "jvp"} <= set(found.laws)
    text = finding_text(found)
    assert "def setup_context(ctx, inputs, output):" in text
    assert "generate_vmap_rule = True" in text
    assert text.count("@staticmethod\n") == 3, "each part once"


def test_export_is_a_limit_of_torch_and_a_spec_accepts_it_in_one_word():
    (promised,) = verify([spec(RightCube)], [BY_NAME["export"]]).verdicts
    (accepted,) = verify([spec(RightCube, supports=Supports.all(export=None))], [BY_NAME["export"]]).verdicts

    assert (promised.status, promised.finding.rank) == (Status.BROKEN, Rank.LIMIT)
    assert "a limit of torch 2." in promised.finding.message
    assert "`export=None` in its `supports`" in promised.finding.likely
    assert accepted.status is Status.NOT_PROMISED


def test_a_law_that_a_wrong_value_breaks_as_well_says_what_is_left_without_it():
    laws = [BY_NAME["primal"], BY_NAME["export"]]
    report = verify([replace(spec(RightCube), primal=lambda x: 2 * x**3)], laws)
    first, second = findings(report)

    assert (first.verdict.law, first.verdict.finding.likely) == ("primal", "every element is off by the factor 0.5")
    assert (second.verdict.law, second.rank) == ("export", Rank.LIMIT)
    assert "gradient" in second.verdict.finding.message
    assert "value" not in second.verdict.finding.message


def test_a_violation_stands_where_the_law_cannot_tell_of_the_function_by_itself():
    def check(trial):
        if is_stand_in(trial.spec.primal):
            return Finding(status=Status.INCONCLUSIVE, message="nothing to compare with")
        return broken("it is off")

    curious = replace(BY_NAME["layout"], name="curious", check=check, requires=("primal",), capability=None)
    report = verify([replace(spec(RightCube), primal=lambda x: 2 * x**3)], [BY_NAME["primal"], curious])

    assert [(v.law, v.status, v.finding.message) for v in report.verdicts][1:] == [
        ("curious", Status.BROKEN, "it is off")
    ]


def test_a_function_that_is_wrong_for_a_reason_of_its_own_is_no_limit():
    def wrong_where_it_is_traced(x):
        return 2 * x if torch.compiler.is_compiling() else RightCube.apply(x)

    for supports in (Supports.all(), Supports.eager()):
        (verdict,) = verify([spec(wrong_where_it_is_traced, supports=supports)], [BY_NAME["compile"]]).verdicts
        assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG), supports


def of_frames(y_bar):
    """Return the sum of frames of three of five numbers, two apart, where they overlap."""
    return torch.stack((y_bar[:, 0, 0], y_bar[:, 0, 1], y_bar[:, 0, 2] + y_bar[:, 1, 0], *y_bar[:, 1, 1:].T), 1)


class Frames(Function):
    """Overlapping frames of a signal, a view on it."""

    @staticmethod
    def forward(ctx, x):
        return x.unfold(-1, 3, 2)

    @staticmethod
    def backward(ctx, y_bar):
        return of_frames(y_bar)


def frames_spec(function, **more):
    def frame_cases(make):
        yield Case(name="signal", args=(make(2, 5),))

    def copied(x):
        return x.unfold(-1, 3, 2).clone()

    more.setdefault("supports", Supports.all())
    return FunctionSpec(
        name="frames", function=function, primal=copied, surrogate=copied, wrt=("x",), cases=frame_cases, **more
    )


@pytest.mark.slow
def test_that_torch_compiles_overlapping_outputs_wrongly_is_no_ones_fault():
    def copied(x):
        return Frames.apply(x).clone()

    (promised,) = verify([frames_spec(Frames.apply)], [BY_NAME["compile"]]).verdicts
    (accepted,) = verify([frames_spec(Frames.apply, supports=Supports.eager())], [BY_NAME["compile"]]).verdicts
    (without,) = verify([frames_spec(copied)], [BY_NAME["compile"]]).verdicts

    assert (promised.status, promised.finding.rank) == (Status.BROKEN, Rank.LIMIT)
    assert accepted.status is Status.NOT_PROMISED
    assert without.status is Status.HOLDS


@pytest.mark.slow
def test_overlapping_outputs_excuse_nothing_that_a_copy_would_not_mend():
    def wrong_where_it_is_traced(x):
        return Frames.apply(2 * x if torch.compiler.is_compiling() else x)

    class Doubled(Frames):
        @staticmethod
        def backward(ctx, y_bar):
            return of_frames(y_bar) * (2 if torch.compiler.is_compiling() else 1)

    for function in (Doubled.apply, wrong_where_it_is_traced):
        for supports in (Supports.all(), Supports.eager()):
            (verdict,) = verify([frames_spec(function, supports=supports)], [BY_NAME["compile"]]).verdicts
            assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG), supports


def test_who_promises_eager_training_alone_is_green():
    assert verify([spec(RightCube, supports=Supports.eager())], QUICK).failures == ()


def test_a_second_derivative_that_is_lost_silently_is_torchs_doing_under_once_differentiable():
    (form,) = verify([spec(OnceCube)], [BY_NAME["second_order"]]).verdicts
    (eager,) = verify([spec(OnceCube, supports=Supports.eager())], [BY_NAME["second_order"]]).verdicts

    assert form.status is Status.BROKEN
    assert form.finding.details["lacks"] == ["differentiable"]
    assert eager.status is Status.NOT_PROMISED


def test_the_rank_decides_what_fails():
    report = verify([spec(RightCube)], QUICK)

    assert report.failures
    assert judge(report, Bar(fail_on=Rank.REFUSED)).fails
    assert not judge(report, Bar(fail_on=Rank.WRONG)).fails
    assert judge(verify([spec(Cube)], [BY_NAME["vjp"]]), Bar(fail_on=Rank.WRONG)).fails


@pytest.mark.parametrize("law", ["checkpoint", "retained_graph", "precision"])
def test_a_law_asked_for_alone_says_the_same_cause(law):
    (alone,) = verify([spec(Cube)], [BY_NAME[law]]).verdicts
    (beside,) = verify([spec(Cube)], [BY_NAME["vjp"], BY_NAME[law]]).of(law=law)

    assert alone.finding == beside.finding
    assert alone.finding.follows == "vjp"


def test_a_hint_is_not_given_where_it_is_not_true():
    drifting = replace(spec(Cube), surrogate=lambda x: 2 / 3 * x**3)  # as it is meant
    report = verify([drifting], [BY_NAME["func_grad"], BY_NAME["checkpoint"], BY_NAME["retained_graph"]])

    assert {v.law: v.finding.likely for v in report.of(law="checkpoint")} == {"checkpoint": ""}
    assert all("dropped" not in v.finding.likely for v in report.verdicts)


def test_what_follows_from_a_law_that_was_not_asked_for_fails_all_the_same():
    report = verify([spec(Cube)], [BY_NAME["checkpoint"]])
    (found,) = findings(report)

    assert (found.verdict.law, found.verdict.finding.follows) == ("checkpoint", "vjp")
    assert judge(report, Bar(fail_on=Rank.WRONG)).fails


def made(law, rank=Rank.REFUSED, **facts):
    finding = Finding(status=Status.BROKEN, rank=rank, **facts)
    return Verdict(spec="cube", law=law, case="matrix", finding=finding)


def test_what_follows_from_what_follows_has_the_same_root():
    laws = {"vjp": {}, "jvp": {}, "adjoint": {}}
    verdicts = (made("vjp", Rank.WRONG), made("jvp", "", follows="vjp"), made("adjoint", "", follows="jvp"))
    (found,) = findings(Report(provenance={}, sheets={}, laws=laws, sources={}, verdicts=verdicts))

    assert (found.verdict.law, found.follows) == ("vjp", ["jvp", "adjoint"])


def test_a_cause_is_as_dangerous_as_the_worst_of_what_it_breaks():
    lacks = {"details": {"lacks": ["setup_context"]}}
    verdicts = (made("jvp", **lacks), made("compile_grad", Rank.WRONG, **lacks))
    report = Report(provenance={}, sheets={}, laws={"jvp": {}, "compile_grad": {}}, sources={}, verdicts=verdicts)
    (found,) = findings(report)

    assert (found.verdict.law, found.rank, found.laws) == ("compile_grad", Rank.WRONG, ["jvp", "compile_grad"])
    assert judge(report, Bar(fail_on=Rank.WRONG)).fails


def test_what_training_shows_comes_before_what_torch_makes_of_it():
    def said(law):
        finding = Finding(status=Status.BROKEN, message="wrong", rank=Rank.WRONG)
        return Verdict(spec="one", law=law, case="a", finding=finding)

    laws = {law.name: law.sheet for law in LAWS}
    verdicts = [said("compile"), said("global_state")]
    report = Report(provenance={}, sheets={}, laws=laws, sources={}, verdicts=verdicts)

    assert list(laws).index("compile") < list(laws).index("global_state")
    assert [found.verdict.law for found in findings(report)] == ["global_state", "compile"]


class IgnoresItsCotangent(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sum()

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w, x.clone()


@pytest.mark.parametrize("how", [{}, {"reference": lambda x, w: (x * w).sum()}], ids=["alone", "reference"])
def test_a_gradient_that_is_the_same_for_every_cotangent_is_one_finding(how):
    call = tuple(torch.randn(3, requires_grad=True) for _ in range(2))
    laws = ["surrogate", "vjp", "cotangent_linearity", "undefined_cotangent"]
    (found,) = findings(audit(IgnoresItsCotangent, [call], laws=laws, jobs=1, **how).report)

    assert set(found.follows) >= {"cotangent_linearity", "undefined_cotangent"}


def test_a_case_that_raises_is_another_finding_than_one_with_other_numbers():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.size = len(x)
            return 2 * x

        @staticmethod
        def backward(ctx, y_bar):
            if ctx.size == 1:
                raise IndexError("no second row")
            return 3 * y_bar

    cases = [torch.randn(3, requires_grad=True), torch.randn(1, requires_grad=True)]
    spec = FunctionSpec(Doubled.apply, lambda x: 2 * x, name="doubled", cases=cases)
    report = verify([spec], [BY_NAME["vjp"]])

    assert [len(found.cases) for found in findings(report)] == [1, 1]
    assert "no second row" in str(report)


class ScalesWhatIsSaved(Function):
    """Computes its gradients in forward, and scales them where they are saved, as a fused loss does."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(2 * x)
        return x.square().sum()

    @staticmethod
    def backward(ctx, y_bar):
        (x_bar,) = ctx.saved_tensors
        x_bar.mul_(y_bar)
        return x_bar


def test_what_backward_changes_is_named_where_torch_refuses_the_second_pass():
    (verdict,) = audit(ScalesWhatIsSaved, ["(randn(3),)"], laws=["retained_graph"]).report.violations

    assert "raised" in verdict.finding.details
    assert verdict.finding.likely.startswith("backward changes what forward keeps for it: aten.mul_ (test_causes.py:")
