"""Simulated ranks leave nothing behind, and where they cannot be had the law `sharded` takes two processes."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.testing._internal.distributed.fake_pg import FakeStore

from gradspec._audit._placed import placed
from gradspec._engine._check import run_check
from gradspec._engine._plan import plan
from gradspec._engine._verify import verify
from gradspec.functions import INSTANCE_DISCRIMINATION_LOSS, LINEAR_CROSS_ENTROPY
from gradspec.law import HOLDS, Finding, Reason, Status, TrialOf, broken
from gradspec.laws import LAWS
from gradspec.laws.tensor._sharded import judge_placements
from gradspec.laws.tensor.support import _real_ranks
from gradspec.laws.tensor.support._ranks import UnsimulatedError, simulated_mesh
from gradspec.laws.tensor.support._real_ranks import found_on_two
from gradspec.profile import load_profile
from gradspec.spec import Case, FunctionSpec, Placements, Supports
from gradspec.spec._maker import Maker
from gradspec_lab.specimens import DISEASED, HONEST, breaking
from gradspec_lab.specimens.honest import PRODUCT, Product, Scale
from gradspec_lab.specimens.sharded import is_placed, labelled

PROFILE = load_profile("quick")
SHARDED = next(law for law in LAWS if law.name == "sharded")
SCALE_OF_ROWS, SCALE_OF_SHARDS = (
    next(spec for spec in HONEST if spec.name == name) for name in ("scale_of_rows", "scale_of_shards")
)
ROWS = Placements(arguments={"x": "shard(0)"}, output="shard(0)")


@pytest.fixture
def no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take from torch what it simulates ranks with."""
    monkeypatch.delattr("torch.distributed._local_tensor.LocalTensorMode")
    with pytest.raises(UnsimulatedError, match="simulates no ranks"), simulated_mesh("cpu"):
        pass


def finding_of(spec: FunctionSpec) -> Finding:
    """Return what the law says of the first case."""
    return run_check(plan([spec], [SHARDED], PROFILE)[0], PROFILE).finding


def findings_of(spec: FunctionSpec, seed: int = 0) -> list[Finding]:
    """Return what the law says of each case."""
    return [run_check(check, PROFILE, seed=seed).finding for check in plan([spec], [SHARDED], PROFILE)]


def finding_on_simulated_ranks(function: Any) -> None:
    """Judge a function in place of the scale of rows where no other ranks are at hand."""
    spec = replace(SCALE_OF_ROWS, function=function)
    case = next(iter(spec.cases(Maker(0, "cpu"))))
    with simulated_mesh("cpu") as mesh:
        judge_placements(TrialOf(spec=spec, case=case, profile=PROFILE, seed=0), ROWS, mesh)


def test_the_process_group_ends_with_the_check() -> None:
    assert finding_of(SCALE_OF_ROWS).status is Status.HOLDS
    assert not torch.distributed.is_initialized()


def test_an_error_of_the_function_ends_the_process_group_and_breaks_the_law() -> None:
    def refuses(x, factor):
        if type(x).__name__ == "DTensor":
            raise ValueError("no DTensor")
        return factor * x + ((1 - factor) * x).detach()

    finding = finding_of(replace(SCALE_OF_ROWS, function=refuses))
    assert (finding.status, finding.message) == (Status.BROKEN, "raised ValueError: no DTensor")
    assert not torch.distributed.is_initialized()


def test_a_call_that_the_simulation_refuses_is_made_on_real_ranks() -> None:
    def reads(x, factor):
        if is_placed(x):
            x.to_local()[0].tolist()
        return Scale.apply(x, factor)

    with pytest.raises(UnsimulatedError, match="simulated ranks refuse it: RuntimeError: Cannot convert local tensor"):
        finding_on_simulated_ranks(reads)
    assert finding_of(replace(SCALE_OF_ROWS, function=reads)).status is Status.HOLDS


def test_a_process_group_that_exists_is_left_alone() -> None:
    torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        finding = finding_of(SCALE_OF_ROWS)
        assert torch.distributed.is_initialized()
    finally:
        torch.distributed.destroy_process_group()
    assert (finding.status, finding.message) == (
        Status.NOT_MEASURED,
        "a process group exists already, and the ranks of this law need one of their own",
    )


PLACED = [spec for spec in HONEST if getattr(spec, "placements", ())]
SICK = [DISEASED[name].spec for name in breaking("sharded")]


#: One that is sound and one that is not.
FIRST = (SCALE_OF_ROWS, SICK[0])


@pytest.mark.parametrize(
    "spec",
    [spec if spec in FIRST else pytest.param(spec, marks=pytest.mark.slow) for spec in (*PLACED, *SICK)],
    ids=lambda spec: spec.name,
)
def test_a_torch_that_simulates_no_ranks_finds_the_same_on_two_processes(
    spec: FunctionSpec, no_simulation: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = findings_of(spec)
    monkeypatch.undo()
    simulated = findings_of(spec)

    assert simulated == real
    assert (Status.BROKEN in {finding.status for finding in real}) == (spec in SICK)
    monkeypatch.setitem(sys.modules, "torch.distributed._local_tensor", None)
    assert findings_of(spec) == simulated  # though DTensor has sizes of simulated ranks in its cache


def test_an_error_on_two_processes_is_that_of_simulated_ranks(no_simulation: None) -> None:
    def refuses(x, factor):
        if is_placed(x):
            raise ValueError("no DTensor")
        return Scale.apply(x, factor)

    finding = finding_of(replace(SCALE_OF_ROWS, function=refuses))
    assert (finding.status, finding.message) == (Status.BROKEN, "raised ValueError: no DTensor")
    assert not torch.distributed.is_initialized()


def test_an_error_on_the_other_rank_only_is_said_to_be_there(no_simulation: None) -> None:
    def refuses(x, factor):
        if is_placed(x) and x.device_mesh.get_local_rank():
            raise ValueError("no second rank")
        return Scale.apply(x, factor)

    finding = finding_of(replace(SCALE_OF_ROWS, function=refuses))
    assert finding.message == "on rank 1 raised ValueError: no second rank"


def test_a_mix_that_one_rank_refuses_is_refused_on_both(no_simulation: None) -> None:
    def product(x, weight):
        if is_placed(x) == is_placed(weight):
            return Product.apply(x, weight)
        if not is_placed(x) or x.device_mesh.get_local_rank():
            raise ValueError("no mix")
        return labelled(x.to_local() * weight, x)

    (spec,) = (spec for spec in HONEST if spec.name == "product_of_rows")
    check = next(check for check in plan([spec], [SHARDED], PROFILE) if check.case == "broadcast")
    finding = run_check(replace(check, spec=replace(spec, function=product)), PROFILE).finding
    assert finding.status is Status.HOLDS


def test_a_spec_that_no_other_process_could_import_is_judged_in_a_child(no_simulation: None) -> None:
    spec = replace(SCALE_OF_ROWS, function=lambda x, factor: Scale.apply(x, factor))
    report = verify([spec], [SHARDED], profile=PROFILE, isolate=True)
    assert {verdict.status for verdict in report.verdicts} == {Status.HOLDS, Status.NOT_APPLICABLE}


def test_a_torch_without_gloo_measures_nothing(no_simulation: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_gloo_available", lambda: False)
    finding = finding_of(SCALE_OF_ROWS)
    assert finding.status is Status.NOT_MEASURED
    assert finding.message.startswith(f"torch {torch.__version__} simulates no ranks: ")
    assert finding.message.endswith(f"cannot be had either: torch {torch.__version__} is built without gloo")


def test_a_fork_that_takes_no_gradient_measures_nothing(no_simulation: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def beside_threads():
        raise RuntimeError("Unable to handle autograd's threading in combination with fork-based multiprocessing.")

    monkeypatch.setattr(_real_ranks, "_a_gradient", beside_threads)
    finding = finding_of(SCALE_OF_ROWS)
    assert finding.status is Status.NOT_MEASURED
    assert "a forked process takes no gradient: RuntimeError: Unable to handle" in finding.message


def test_the_tensors_of_a_list_are_placed_as_the_list() -> None:
    spec = FunctionSpec(
        name="total",
        function=lambda xs: xs[0] + xs[1],
        primal=lambda xs: xs[0] + xs[1],
        surrogate=lambda xs: xs[0] + xs[1],
        wrt=("xs",),
        cases=lambda make: iter([Case(name="two", args=([make(4, 3), make(4, 3)],))]),
        supports=Supports.eager(),
        placements=(Placements(arguments={"xs": "shard(0)"}, output="shard(0)"),),
    )
    assert finding_of(spec).status is Status.HOLDS
    as_all = replace(spec, placements=(Placements(arguments={"xs": "shard(0)"}, output="replicate"),))
    finding = finding_of(as_all)
    assert finding.message == "value with `xs_0` shard(0), `xs_1` shard(0) is not placed as declared"
    assert (finding.got, finding.expected) == ("shard(0)", "replicate")


@pytest.mark.parametrize(
    ("arguments", "output", "message"),
    [
        ({"x": "rows"}, "shard(0)", 'the placement of x is \'rows\', expected "shard(0)" or "replicate"'),
        ({"x": "partial"}, "shard(0)", 'the placement of x is \'partial\', expected "shard(0)" or "replicate"'),
        (
            {"output": "partial"},
            "shard(0)",
            'the placement of output is \'partial\', expected "shard(0)" or "replicate"',
        ),
        (
            {"x": "shard(0)"},
            "",
            'the placement of the output is \'\', expected "shard(0)" or "replicate" or "partial", "plain" or "any"',
        ),
    ],
)
def test_a_placement_is_one_of_three_words(arguments: dict[str, str], output: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^the placement of") as error:
        Placements(arguments=arguments, output=output)
    assert str(error.value) == message


def test_a_placement_names_a_parameter() -> None:
    with pytest.raises(ValueError, match="'y' is not a parameter of primal"):
        replace(SCALE_OF_ROWS, placements=(Placements(arguments={"y": "shard(0)"}, output="shard(0)"),))


def test_another_implementation_declares_its_own_placements() -> None:
    assert SCALE_OF_ROWS.placements == (ROWS,)
    assert SCALE_OF_ROWS.for_(SCALE_OF_ROWS.function, name="theirs").placements == ()


def test_an_audit_shares_the_rows_of_all_arguments_then_of_each_alone() -> None:
    def ways(*args: Any) -> list[tuple[dict[str, str], str]]:
        spec = replace(PRODUCT, primal=lambda x, weight: x * weight)
        return [(dict(way.arguments), way.output) for way in placed(spec, Case(name="", args=args)).placements]

    x, row, number = torch.ones(4, 3), torch.ones(3), torch.ones(())
    both = {"x": "shard(0)", "weight": "shard(0)"}
    of_x, of_weight = {"x": "shard(0)", "weight": "replicate"}, {"x": "replicate", "weight": "shard(0)"}
    assert ways(x, x) == [(both, "shard(0)"), (of_x, "any"), (of_weight, "any")]
    assert ways(x, row) == [(of_x, "shard(0)"), (of_weight, "any")]
    assert ways(x, number) == [(of_x, "shard(0)")]


def test_a_wrong_way_is_said_before_one_that_raises() -> None:
    def half(x, factor):
        if is_placed(x) and x.placements[0].is_replicate():
            raise ValueError("no whole tensor")
        return Scale.apply(2 * x if is_placed(x) else x, factor)

    spec = replace(SCALE_OF_ROWS, function=half, placements=SCALE_OF_SHARDS.placements)
    assert finding_of(spec).message.startswith("value with `x` shard(0) on rank 0 differs")


def test_all_arguments_but_one_may_be_plain_tensors() -> None:
    def total(x, y, z):
        if [is_placed(t) for t in (x, y, z)] == [True, False, False]:
            return labelled(x.to_local() + y[: len(x.to_local())] + z[: len(x.to_local())], x)
        return x + y + z

    spec = FunctionSpec(
        name="total_of_three",
        function=total,
        primal=lambda x, y, z: x + y + z,
        surrogate=lambda x, y, z: x + y + z,
        wrt=("x", "y", "z"),
        cases=lambda make: iter([Case(name="rows", args=(make(4, 3), make(4, 3), make(4, 3)))]),
        supports=Supports.eager(),
        placements=(Placements(arguments=dict.fromkeys("xyz", "shard(0)"), output="shard(0)"),),
    )
    assert finding_of(spec).message.startswith("value where only `y`, `z` are plain tensors on rank 0 differs")


@pytest.mark.parametrize("spec", [LINEAR_CROSS_ENTROPY, INSTANCE_DISCRIMINATION_LOSS], ids=lambda spec: spec.name)
def test_a_loss_whose_classes_are_shared_among_ranks_gives_that_of_one_process(spec: FunctionSpec) -> None:
    assert finding_of(spec).status is Status.HOLDS

    (way,) = spec.placements

    def of_its_own_rows(x, weight, y, *options):
        return spec.function(x, weight.to_local(), y % len(weight.to_local()), *options)

    def of_its_own_bank(x, y, memory, *options):
        return spec.function(x, y % len(memory.to_local()), memory.to_local(), *options)

    call = of_its_own_rows if spec is LINEAR_CROSS_ENTROPY else of_its_own_bank
    finding = finding_of(replace(spec, placements=(replace(way, call=call),)))
    assert re.search(r"value with `\w+` shard\(0\) on rank \d differs", finding.message)
    as_rows = replace(spec, placements=(replace(way, output="replicate"),))
    assert (finding_of(as_rows).got, finding_of(as_rows).expected) == ("a plain tensor", "replicate")


def test_what_another_process_finds_comes_with_its_reason() -> None:
    why = Reason(kind="factor", words="off by the factor 2", evidence={"factor": 2.0})

    def judge(mesh: object) -> Finding:
        return broken("it differs", reason=why) if torch.distributed.get_rank() == 1 else HOLDS

    assert found_on_two(judge, "cpu").reason == why
