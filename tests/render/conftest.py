"""A report with names that every format must escape, and one of the same specs in which something is mended."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradspec import Case, FunctionSpec, Report, Supports, verify
from gradspec.laws import LAWS

#: In each format something of this ends a field, opens a tag or begins an escape.
AWKWARD = """a<b> & "c" 'd', e: %0A ::error::f"""


class Double(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


def double(x):
    return 2 * x


def spec(name, *cases, function=Double.apply):
    def made(make):
        yield from (Case(name=case, args=(make(2, 3),)) for case in cases)

    return FunctionSpec(
        name=name,
        function=function,
        primal=double,
        surrogate=double,
        wrt=("x",),
        cases=made,
        supports=Supports.all(),
    )


def run(*specs) -> Report:
    chosen = [law for law in LAWS if law.name in ("primal", "vjp", "raw_returns", "formula")]
    return verify(specs, chosen, isolate=False)


@pytest.fixture(scope="session")
def report() -> Report:
    """Three specs: one sound, one that breaks `vjp` on both of its cases, and one that cannot be run."""

    def raises(x):
        raise ValueError(f"]]> {AWKWARD}\nand another line")

    return run(
        spec("sound", "a", function=double),
        spec(f"broken {AWKWARD}", "a", AWKWARD),
        spec("raises", "a", function=raises),
    )


@pytest.fixture(scope="session")
def baseline(report) -> Report:
    """The same in which `sound` was not, and one of the two failing cases held."""
    (held,) = (v for v in report.verdicts if (v.law, v.case) == ("vjp", AWKWARD))
    (was,) = (v for v in report.verdicts if (v.spec, v.law) == ("sound", "vjp"))
    failed = replace(was, finding=replace(held.finding, message="it failed then"))
    there = [failed if v == was else v for v in report.verdicts if v != held]
    return replace(report, verdicts=tuple(there))


@pytest.fixture
def here(monkeypatch):
    """Where the source of these specs lies below the working directory, as in a repository."""
    monkeypatch.chdir(Path(__file__).parents[2])
