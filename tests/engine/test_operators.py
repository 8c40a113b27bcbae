"""Operators: what a spec reads from a schema, and what the laws say of those that somebody else wrote."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gradspec import Case, OperatorSpec, Status, audit, verify
from gradspec._engine._check import run_check
from gradspec._engine._plan import plan
from gradspec.findings import findings
from gradspec.law import Rank
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.spec._schema import overload_of
from gradspec_lab.specimens import DISEASED
from gradspec_lab.strangers.operator_specs import OPERATORS, spec_of, subjects

QUICK = [law for law in LAWS if law.judges("operator") and law.cost == "ms"]
NAMED = {law.name: law for law in LAWS}


@torch.library.custom_op("gradspec_tests::mix", mutates_args=("state",))
def mix(xs: list[Tensor], state: Tensor, *, gain: float = 2.0) -> Tensor:
    state.add_(1)
    return gain * sum(xs)


def mixed(xs, state, *, gain=2.0):
    return gain * sum(xs), state + 1


def one_case(make):
    yield Case(name="two", args=([make(3), make(3)], make(2)), kwargs={"gain": 0.5})


MIX = OperatorSpec(name="mix", operator="gradspec_tests::mix", primal=mixed, wrt=(), cases=one_case)


def found(name, laws=QUICK):
    return findings(verify([spec_of(name)], laws))


def test_what_is_written_is_an_output_and_the_argument_stays():
    xs, state = [torch.ones(3), torch.ones(3)], torch.zeros(2)

    y, moved = MIX.function(xs, state, gain=0.5)

    assert y.tolist() == [1, 1, 1]
    assert moved.tolist() == [1, 1]
    assert state.tolist() == [0, 0]
    assert MIX.writes == ("state",)


@pytest.mark.parametrize(
    "form", ["gradspec_tests::mix", torch.ops.gradspec_tests.mix, mix, "gradspec_tests::mix.default"]
)
def test_an_operator_is_named_by_every_form_that_torch_has(form):
    assert overload_of(form) is torch.ops.gradspec_tests.mix.default


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("mix", 'names no operator: write "namespace::name"'),
        ("gradspec_tests::nothing", "there is no operator gradspec_tests::nothing: import the module"),
        ("aten::add.nothing", "and no 'nothing'"),
        (torch.ops.aten.pow, "has the overloads"),
        (torch.sin, "is not an operator"),
    ],
)
def test_what_is_no_operator_is_refused_in_a_sentence(operator, said):
    with pytest.raises(ValueError, match=r"spec 'wrong': ") as error:
        OperatorSpec(name="wrong", operator=operator, primal=mixed, wrt=(), cases=one_case)
    assert said in str(error.value)


def test_a_primal_of_other_arguments_than_the_schema_is_refused():
    with pytest.raises(ValueError, match=r"primal\(x\) and the schema .* have different arguments"):
        OperatorSpec(name="wrong", operator=mix, primal=lambda x: x, wrt=(), cases=one_case)


def test_one_tensor_of_a_list_is_differentiated():
    @torch.library.custom_op("gradspec_tests::first", mutates_args=())
    def first(xs: list[Tensor]) -> Tensor:
        return xs[0] * 3

    first.register_fake(lambda xs: torch.empty_like(xs[0]))
    first.register_autograd(lambda ctx, grad: ([3 * grad, None],))

    def cases(make):
        yield Case(name="two", args=([make(3), make(3)],))

    spec = OperatorSpec(name="first", operator=first, primal=lambda xs: xs[0] * 3, wrt=("xs[0]",), cases=cases)
    report = verify([spec], [NAMED["primal"], NAMED["vjp"]])
    assert {v.status for v in report.verdicts} == {Status.HOLDS}


@pytest.mark.slow
def test_one_new_process_serves_all_cases_of_an_export(monkeypatch):
    spec, began, run = DISEASED["gradient_lost_in_an_export"].spec, [], subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *args, **how: began.append(args) or run(*args, **how))
    checks = [check for check in plan([spec], [NAMED["exported_operator"]]) if check.law.name == "exported_operator"]
    found = {check.case: run_check(check, load_profile("quick"), seed=0, prior={}).finding for check in checks}

    assert len(began) == 1
    assert "(case 'rounded', taken apart)" in found["as it is"].message
    assert found["rounded"].status is Status.NOT_APPLICABLE


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "scale",
        "observe",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("weighted_sum", "affine", "square_into", "row_max", "hard_round")
        ),
    ],
)
def test_a_sound_operator_has_no_finding_of_the_first_two_ranks(name):
    wrong = [f.verdict for f in found(f"strangers_sound::{name}") if f.rank in (Rank.WRONG, Rank.REFUSED)]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("sine", "vjp"),
        ("arctangent_backward", "layout"),
        ("gated", "needs_input_grad"),
        ("negate_backward", "schema"),
        ("linear", "schema"),
        ("track", "schema"),
        ("relu6", "schema"),
        ("head", "schema"),
        ("columns", "fake_kernel"),
        ("block_sum", "fake_kernel"),
        ("reverse", "fake_kernel"),
        ("clip", "fake_kernel"),
        ("mish", "kernels"),
        ("quadratic", "kernels"),
        ("row_mix", "vmap"),
    ],
)
def test_a_defect_is_seen_by_its_law(name, law):
    spec = spec_of(f"strangers_diseased::{name}")
    spec = replace(spec, supports=replace(spec.supports, vmap=True if law == "vmap" else None))
    report = verify([spec], [NAMED["primal"], NAMED["vjp"], NAMED[law]])
    assert any(v.status is Status.BROKEN for v in report.of(law=law)), report.of(law=law)


def test_a_needless_gradient_of_an_operator_is_named_by_its_argument():
    @torch.library.custom_op("gradspec_tests::needless_product", mutates_args=())
    def product(x: Tensor, weight: Tensor) -> Tensor:
        return x * weight

    product.register_autograd(
        lambda ctx, y_bar: (y_bar * ctx.saved_tensors[1], y_bar * ctx.saved_tensors[0]),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )

    def within(x: Tensor, weight: Tensor) -> Tensor:
        return product(x.exp(), weight)

    inner = "argument 1 of the operator gradspec_tests_needless_product"
    for function, named in ((product, "`weight`"), (within, inner)):
        (verdict,) = audit(function, ["(randn(3), randn(3))"], laws=[NAMED["needs_input_grad"]]).report.verdicts
        assert named in verdict.finding.message, verdict.finding.message


def test_the_first_run_saw_what_opcheck_does_not():
    rows = json.loads((OPERATORS / "first-run.json").read_text(encoding="utf-8"))["rows"]
    judged = [row for row in rows if row["module"] == "diseased" and row["judged"]]
    unseen = {row["name"].partition("::")[2] for row in judged if not row["findings"]}

    assert {row["name"] for row in rows} <= set(subjects())
    assert not {name for name, row in subjects().items() if row["module"] != "reports"} - {row["name"] for row in rows}
    assert unseen == {"exponent_backward", "arctangent_backward"}  # without a gradient: the law layout asks them since
    assert sum(not row["opcheck sees"] for row in judged) > len(judged) / 2


@pytest.mark.parametrize("name", ["exponent_backward", "arctangent_backward"])
def test_what_the_first_run_missed_is_seen_today(name):
    report = verify([spec_of(f"strangers_diseased::{name}")], [NAMED["primal"], NAMED["layout"]])
    assert any(v.status is Status.BROKEN for v in report.of(law="layout"))
