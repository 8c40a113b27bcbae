"""Simulated ranks leave nothing behind, and where they cannot be had the law `sharded` says so."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch
from torch.testing._internal.distributed.fake_pg import FakeStore

from gradspec._engine._check import run_check
from gradspec._engine._plan import plan
from gradspec.law import Finding, Status
from gradspec.laws import LAWS
from gradspec.laws.tensor.support._ranks import UnsimulatedError, simulated_mesh
from gradspec.profile import load_profile
from gradspec.selftest.specimens import HONEST
from gradspec.spec import Case, FunctionSpec, Placements, Supports

PROFILE = load_profile("quick")
SHARDED = next(law for law in LAWS if law.name == "sharded")
SCALE_OF_ROWS = next(spec for spec in HONEST if spec.name == "scale_of_rows")
ROWS = Placements(arguments={"x": "shard(0)"}, output="shard(0)")


def finding_of(spec: FunctionSpec) -> Finding:
    """Return what the law says of the first case."""
    return run_check(plan([spec], [SHARDED], PROFILE)[0], PROFILE).finding


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


def test_a_call_that_the_simulation_refuses_is_not_measured() -> None:
    def reads(x, factor):
        return x.to_local()[0].tolist() if type(x).__name__ == "DTensor" else x.clone()

    finding = finding_of(replace(SCALE_OF_ROWS, function=reads))
    assert finding.status is Status.NOT_MEASURED
    assert finding.message.startswith("torch's simulated ranks refuse it: RuntimeError: Cannot convert local tensor")


def test_a_process_group_that_exists_is_left_alone() -> None:
    torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        finding = finding_of(SCALE_OF_ROWS)
        assert torch.distributed.is_initialized()
    finally:
        torch.distributed.destroy_process_group()
    assert (finding.status, finding.message) == (
        Status.NOT_MEASURED,
        "a process group exists already, and the simulated ranks need one of their own",
    )


def test_a_torch_that_simulates_no_ranks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed._local_tensor", None)
    finding = finding_of(SCALE_OF_ROWS)
    assert finding.status is Status.NOT_MEASURED
    assert finding.message.startswith(f"torch {torch.__version__} simulates no ranks: ")
    with pytest.raises(UnsimulatedError), simulated_mesh("cpu"):
        pass


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
        ({"x": "shard(0)"}, "", 'the placement of the output is \'\', expected "shard(0)" or "replicate" or "partial"'),
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
