"""Kinds: each spec meets the laws of its own kind alone, wherever it is asked for."""

import sys
import types
from dataclasses import replace

import pytest
import torch

from gradspec._engine._plan import plan
from gradspec._engine._verify import verify
from gradspec._registry import _registry as registry
from gradspec.law import ALL_KINDS, HOLDS, Law, Status
from gradspec.laws import LAWS
from gradspec.profile import Profile, load_profile
from gradspec.report import Report, judges
from gradspec.spec import ModuleCase
from gradspec.spec._kinds import KINDS, kind_of, spec_sheet
from gradspec_lab.specimens import NET, SCALE, TAG

BY_NAME = {law.name: law for law in LAWS}


def test_a_law_names_kinds_that_exist_and_each_kind_has_laws():
    judged = {kind for law in LAWS if law.kinds != ALL_KINDS for kind in law.kinds}

    assert judged == {kind.name for kind in KINDS}


def test_the_kind_of_a_spec_is_that_of_its_class():
    assert [kind.spec.kind for kind in KINDS] == [kind.name for kind in KINDS]
    with pytest.raises(ValueError, match=r"no kind 'network': the kinds are function, operator, module, text"):
        kind_of("network")


def test_a_spec_meets_the_laws_of_its_kind_and_no_other():
    checks = plan([SCALE, NET, TAG])

    for spec in (SCALE, NET, TAG):
        met = {check.law.name for check in checks if check.spec is spec}
        assert met == {law.name for law in LAWS if law.judges(spec.kind)}


def test_a_record_holds_the_laws_of_the_kinds_that_it_is_about():
    report = verify([NET], profile=Profile(name="mine", laws=("batch_size",)))
    again = Report.from_json(report.to_json())

    assert set(report.laws) == {law.name for law in LAWS if law.judges("module")}
    assert all(judges(law, "module") for law in again.laws.values())
    assert again.sheets["net"]["kind"] == "module"
    assert [v.status for v in again.verdicts] == [Status.HOLDS] * 2


def test_a_sheet_from_before_the_kinds_is_that_of_a_function():
    assert judges({"family": "values"}, "function")
    assert not judges({"family": "values"}, "module")


def test_one_law_may_judge_several_kinds():
    law = Law(
        name="named",
        family="mine",
        statement="",
        check=lambda trial: HOLDS,
        doc="It has a name.",
        kinds=("function", "module"),
    )

    assert {v.spec for v in verify([SCALE, NET], [law]).verdicts} == {"scale", "net"}


def test_a_module_that_lists_both_kinds_gives_both(monkeypatch):
    both = types.ModuleType("both")
    both.FUNCTIONS, both.MODULES = (SCALE,), (NET,)
    monkeypatch.setitem(sys.modules, "both", both)

    assert [spec.name for _, spec in registry.resolve("both")] == ["scale", "net"]


def test_a_law_that_judges_none_of_the_specs_is_said():
    quick = load_profile("quick")

    with pytest.raises(
        registry.TargetError, match="these laws judge a function or operator, and each spec is of a module"
    ):
        registry.select_checks([("specimens:NET", NET)], [BY_NAME["vjp"]], quick)


def test_a_module_spec_without_cases_is_refused_though_functions_have_some():
    empty = replace(NET, name="empty", cases=lambda make: iter(()))

    with pytest.raises(registry.TargetError, match="spec 'empty' has no case"):
        registry.select_checks([("a", SCALE), ("b", empty)], LAWS, load_profile("quick"))


def test_the_sheet_of_a_module_says_what_it_is_called_with():
    sheet = spec_sheet(NET, "specimens:NET")

    assert (sheet["kind"], sheet["path"], sheet["wrt"]) == ("module", "specimens:NET", ["x"])
    assert [p["name"] for p in sheet["signature"]["parameters"]] == ["classes"]
    assert sheet["documented"] == ["gradspec_lab.specimens.modules.Net"]


def test_another_class_is_held_to_the_promise_without_our_examples():
    held = NET.for_(lambda classes: NET.module(classes), name="theirs")

    assert (held.name, held.documented, held.differences) == ("theirs", (), ())
    assert {v.status for v in verify([held], [BY_NAME["batch_size"]]).verdicts} == {Status.HOLDS}


def test_the_wrong_call_of_a_module_is_written_as_a_user_writes_it():
    call, construction = (
        next(v.finding.details["call"] for v in verify([NET], [BY_NAME["wrong_call"]], case=name).verdicts)
        for name in ("no batch", "text")
    )

    assert call == "Net(3)(torch.ones(3, 8, 8, dtype=torch.float64))"
    assert construction == "Net('3')"


def test_a_refused_call_that_moves_the_state_is_caught():
    class Moves(NET.module):
        def features(self, x):
            self.bn.running_mean += 1
            return super().features(x)

    (verdict,) = verify([NET.for_(Moves, name="moves")], [BY_NAME["wrong_call"]], case="no batch").verdicts

    assert verdict.status is Status.BROKEN
    assert "after `bn.running_mean` had changed" in verdict.finding.message


class Theirs(torch.nn.Module):
    """A class of another package than ours."""


def test_the_source_of_a_module_is_that_of_its_promise_and_of_its_class():
    from gradspec.nn import SHAKE_BLOCK, Shortcut

    source = verify([SHAKE_BLOCK], [BY_NAME["batch_size"]]).sources["spec shake_block"]
    borrowed = verify([SHAKE_BLOCK.for_(Theirs, name="theirs")], [BY_NAME["batch_size"]]).sources["spec theirs"]

    assert "gradspec.nn._shake._block_spec" in source.roots
    assert {file.name for file in borrowed.reached().files} >= {"test_kind.py"}, "the class is theirs"
    assert "gradspec.nn._shake._block_spec" in borrowed.roots, "the promise is ours"
    assert borrowed.key
    assert Shortcut.__module__ == "gradspec.nn._shake._shortcut"


def test_a_construction_that_is_never_called_is_no_case_of_a_batch():
    never = replace(NET, cases=lambda make: iter([ModuleCase(name="never called", args=(3,))]))

    assert {v.status for v in verify([never], [BY_NAME["batch_size"]]).verdicts} == {Status.NOT_APPLICABLE}
