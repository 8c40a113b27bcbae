"""A run with a record measures what has changed, and nothing else; what it reports is what a fresh one would."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradspec._engine._reuse import current, merged
from gradspec._engine._verify import verify
from gradspec.law import Finding, Status
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.report import Report

LAW = {law.name: law for law in LAWS}
FEW = [LAW[name] for name in ("primal", "vjp", "adjoint", "examples", "wrong_call", "inputs_untouched")]
SPECS = '''
import torch
from gradspec import Case, FunctionSpec, Supports
from gradspec.spec import Misuse


class Twice(torch.autograd.Function):
    """Return twice x.

    >>> Twice.apply(torch.ones(1)).tolist()
    [2.0]
    """

    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


def cases(make):
    yield Case(name="row", args=(make(3),))
    yield Case(name="matrix", args=(make(2, 3),))


def double(x):
    return 2 * x


def same(x):
    return x * 1.0


TWICE = FunctionSpec(
    name="twice",
    function=Twice.apply,
    primal=double,
    surrogate=double,
    wrt=("x",),
    cases=cases,
    supports=Supports.all(),
    documented=(Twice,),
    summary="Doubles.",
)
ALL = Supports.all()
SAME = FunctionSpec(name="same", function=same, primal=same, wrt=("x",), cases=cases, supports=ALL)
'''


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Write the module of specs, with edits, and import it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "incremental").mkdir()
    (tmp_path / "incremental" / "__init__.py").touch()

    def loaded(*edits: tuple[str, str]) -> ModuleType:
        text = SPECS
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "incremental" / "specs.py").write_text(text)
        for name in [name for name in sys.modules if name.startswith("incremental")]:
            del sys.modules[name]
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            return import_module("incremental.specs")
        finally:
            sys.dont_write_bytecode = before

    yield loaded
    for name in [name for name in sys.modules if name.startswith("incremental")]:
        del sys.modules[name]


def run(module: ModuleType, known: Report | None = None, **how: Any) -> Report:
    report = verify([module.TWICE, module.SAME], FEW, known=known, jobs=1, **how)
    assert len(report.sources) > 2, "they are read before the files change"
    return report


def measured_by(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    from gradspec._engine._session import Session

    asked: list[tuple[str, str, str]] = []
    verdict = Session._verdict
    monkeypatch.setattr(Session, "_verdict", lambda self, c, prior: asked.append(c.cell) or verdict(self, c, prior))
    return asked


def plain(report: Report) -> Any:
    """Return what two equal reports share: not when they were made."""
    data = json.loads(report.to_json())
    del data["checksum"]
    data["provenance"] = {k: v for k, v in data["provenance"].items() if k not in ("date", "commit", "reused from")}
    return data


def test_nothing_is_measured_where_nothing_has_changed(
    load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run(load())
    before = replace(before, provenance={**before.provenance, "date": "2026-01-02 03:04 UTC"})
    asked = measured_by(monkeypatch)
    after = run(load(), known=before)
    assert asked == []
    assert after.reused == len(after.verdicts) > 10
    assert plain(after) == plain(before)
    assert after.provenance["date"] == before.provenance["date"], "nothing was measured today"


def test_a_law_that_changes_is_asked_again_with_those_that_require_it(
    load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run(load())
    old = replace(before.sources["law vjp"], key="another")
    asked = measured_by(monkeypatch)
    run(load(), known=replace(before, sources={**before.sources, "law vjp": old}))
    requiring = {law.name for law in FEW if "vjp" in law.requires}
    explained = {v.law for v in before.verdicts if v.status is Status.BROKEN and "vjp" in LAW[v.law].explained_by}
    assert {law for _, law, _ in asked} == {"vjp"} | requiring | explained


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"seed": 1}, id="seed"),
        pytest.param({"profile": replace(load_profile("quick"), directions=3)}, id="profile"),
    ],
)
def test_another_seed_or_a_harder_profile_measures_all(
    load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    before, asked = run(load()), measured_by(monkeypatch)
    assert len(run(load(), known=before, **change).verdicts) == len(asked)


@pytest.mark.parametrize("name", ["torch", "python", "device", "platform"])
def test_another_environment_measures_all(load: Callable[..., ModuleType], name: str) -> None:
    before = run(load())
    elsewhere = replace(before, provenance={**before.provenance, name: "another"})
    assert run(load(), known=elsewhere).reused == 0


def test_what_did_not_answer_in_time_is_asked_again(load: Callable[..., ModuleType]) -> None:
    before = run(load())
    cut_off = Finding(status=Status.NOT_MEASURED, details={"limit": "time"})
    late = replace(before.verdicts[0], finding=cut_off)
    after = run(load(), known=replace(before, verdicts=(late, *before.verdicts[1:])))
    cell = [v for v in before.verdicts if (v.spec, v.case) == (late.spec, late.case)]
    asked = [v for v in cell if v.law == late.law or late.law in LAW[v.law].requires]
    assert after.reused == len(after.verdicts) - len(asked), "with the laws that require it"


def test_what_a_required_law_in_error_decides_is_asked_again(load: Callable[..., ModuleType]) -> None:
    module = load(("return x * 1.0", "raise LookupError"))
    whole = run(module)
    assert {v.status.value for v in whole.of(spec="same", law="primal")} == {"error"}
    assert {v.status.value for v in whole.of(spec="same", law="vjp")} == {"not_measured"}
    again = run(module, known=whole)
    assert plain(again) == plain(whole)
    alone = verify([module.SAME], [LAW["vjp"]], jobs=1, known=whole)
    assert {v.status.value for v in alone.verdicts} == {"error"}, "asked alone, it says itself that nothing works"
    both = merged(whole, alone)
    assert len(both.verdicts) == len(whole.verdicts)


@pytest.mark.parametrize("part", ["double", "cases"])
def test_a_spec_that_was_typed_into_an_interpreter_is_measured_each_time(
    part: str, load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load()
    # Its function is in a file, and says nothing of the rest.
    getattr(module, part).__module__ = "__main__"
    typed = replace(module.SAME, primal=module.double, cases=module.cases, name="typed")
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    before = verify([typed], FEW[:1], jobs=1)
    assert before.sources["spec typed"].key == ""
    assert current(before, before, []) == {}
    assert verify([typed], FEW[:1], jobs=1, known=before).reused == 0


def test_a_violation_is_asked_again_where_what_explains_it_has_changed(
    load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(("return 2 * grad", "raise LookupError('no gradient')"))
    before = run(module)
    old = replace(before.sources["law vjp"], key="another")
    asked = measured_by(monkeypatch)
    run(module, known=replace(before, sources={**before.sources, "law vjp": old}))
    broken = {v.law for v in before.of(spec="twice") if v.status is Status.BROKEN and "vjp" in LAW[v.law].explained_by}
    assert "inputs_untouched" in broken
    assert {law for spec, law, _ in asked if spec == "twice"} == {"vjp"} | broken


@pytest.mark.parametrize("edit", [("return 2 * grad", "return 3 * grad"), ("Doubles.", "Doubles it.")])
def test_an_edit_of_its_file_measures_a_spec_again(
    load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch, edit: tuple[str, str]
) -> None:
    before = run(load())
    asked = measured_by(monkeypatch)
    after = run(load(edit), known=before)
    assert (after.reused, len(asked)) == (0, len(after.verdicts))


def test_a_part_of_a_run_leaves_the_rest_of_a_record_as_it_is(load: Callable[..., ModuleType]) -> None:
    module = load()
    whole = run(module)
    part = verify([module.TWICE], [LAW["adjoint"]], jobs=1)
    assert plain(merged(whole, part)) == plain(whole)


def test_a_part_of_a_run_keeps_what_is_of_an_older_source_and_says_so(load: Callable[..., ModuleType]) -> None:
    whole = run(load())
    module = load(("return 2 * grad", "return 2.0 * grad"))
    both = merged(whole, verify([module.TWICE], [LAW["vjp"]], jobs=1))
    assert len(both.verdicts) == len(whole.verdicts)
    assert {spec for spec, _, _ in both.older} == {"twice"}
    assert {law for _, law, _ in both.older} == {v.law for v in whole.of(spec="twice")} - {"vjp"}
    assert "cells are of an older source" in both.incomplete
    again = verify([module.TWICE], FEW, jobs=1, known=both)
    assert again.reused == len(both.of(spec="twice", law="vjp"))
    assert merged(both, again).older == ()


def test_a_case_that_a_spec_no_longer_has_leaves_the_record(load: Callable[..., ModuleType]) -> None:
    whole = run(load())
    case = whole.of(spec="twice", law="vjp")[0].case
    module = load((case, "renamed"))
    part = verify([module.TWICE], [LAW["vjp"]], jobs=1)
    both = merged(whole, part)
    cases = {verdict.case for verdict in both.of(spec="twice", law="vjp")}
    assert cases == {verdict.case for verdict in part.verdicts}
    assert case not in cases
    assert case in {verdict.case for verdict in both.of(spec="twice", law="adjoint")}, "nobody asked about this law"
    first, *others = part.verdicts
    shard = replace(part, verdicts=(first,), missing=tuple(verdict.cell for verdict in others))
    assert len(merged(both, shard).verdicts) == len(both.verdicts), "what a part did not measure is still there"


def test_a_file_that_changes_while_it_is_measured_is_measured_again(load: Callable[..., ModuleType]) -> None:
    module = load()
    before = verify([module.SAME], FEW[:1], jobs=1)
    file = Path(str(module.__file__))
    file.write_text(file.read_text().replace("return x * 1.0", "return x * 2.0"))
    later = file.stat().st_mtime + 10
    os.utime(file, (later, later))
    assert before.sources["spec same"].key == "", "the bytes of now are not those that were measured"
