"""TextSpec: found, verified and shown as the other kinds are, and needing torch for none of it before a law runs."""

import subprocess
import sys
from dataclasses import replace
from inspect import iscoroutinefunction

import pytest

from gradspec._engine._verify import verify
from gradspec._registry import _registry as registry
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.spec import Misuse, TextCase
from gradspec.spec._kinds import spec_sheet
from gradspec.text import TEXTS, Variable
from gradspec_lab.specimens import TAG

BY_NAME = {law.name: law for law in LAWS}


def test_a_spec_is_made_without_torch():
    code = "import sys, gradspec.spec._text, gradspec.text; print(len(gradspec.text.TEXTS), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == f"{len(TEXTS)} False\n"


def test_a_spec_is_handed_its_engine_and_imports_none():
    code = "import sys, gradspec.spec as s; print('gradspec.text' in sys.modules); s.TextMaker()('a text')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout == "False\n"
    assert "a case on text is made of the Variables of gradspec.text: import gradspec.text first" in done.stderr


def test_every_operation_of_the_package_has_a_spec():
    from gradspec.text import ops

    # What is awaited, as `achat`, is another way to call an operation that has one.
    operations = {name for name in ops.__all__ if name.islower() and not iscoroutinefunction(getattr(ops, name))}

    assert {spec.name.removeprefix("text_") for spec in TEXTS} == operations


@pytest.mark.parametrize("spec", TEXTS, ids=lambda spec: spec.name)
def test_our_operations_keep_the_laws(spec):
    verdicts = verify([spec], isolate=False).verdicts

    assert [(v.law, v.case, v.finding) for v in verdicts if v.status.is_failure] == []
    assert {v.law for v in verdicts if v.status is Status.HOLDS} == {law.name for law in LAWS if law.judges("text")}


def test_a_package_lists_its_text_specs():
    found = registry.resolve("gradspec.text")

    assert [spec.name for _, spec in found] == [spec.name for spec in TEXTS]
    assert [registry.resolve(path)[0][1] for path, _ in found] == list(TEXTS)


def test_the_sheet_shows_the_call_without_ctx():
    sheet = spec_sheet(TAG, "specimens:TAG")

    assert [p["name"] for p in sheet["signature"]["parameters"]] == ["x", "y", "mark"]
    assert (sheet["kind"], sheet["wrt"], sheet["io_bound"]) == ("text", ["x", "y"], False)


def test_an_operation_is_shown_where_users_import_it():
    assert spec_sheet(TEXTS[0])["documented"] == ["gradspec.text.ops.add"]


def test_a_name_that_is_no_parameter_is_refused():
    with pytest.raises(ValueError, match=r"'z' is not a parameter of primal\(x, y, mark\)"):
        replace(TAG, wrt=("z",))


def test_a_case_that_expects_feedback_where_nothing_wants_any_is_an_error():
    def cases(make):
        yield TextCase(name="elsewhere", args=(make("a"), "b"), says={"y": "well"})

    (verdict,) = verify([replace(TAG, cases=cases)], [BY_NAME["feedback"]], isolate=False).verdicts

    assert verdict.status is Status.ERROR
    assert "`y`, where no Variable wants any" in verdict.finding.message


def misused(name, args, function=TAG.function, feedback=None):
    case = TextCase(name=name, args=args, feedback=feedback)
    spec = replace(TAG, function=function, raises=lambda make: iter([Misuse(case=case, error=TypeError, match="")]))
    (verdict,) = verify([spec], [BY_NAME["wrong_call"]], isolate=False).verdicts
    return verdict


def test_a_wrong_backward_is_a_wrong_call_too():
    def backward(feedback):
        raise TypeError("this feedback is refused")

    def function(x, y, mark="!"):
        output = TAG.function(x, y, mark)
        output.register_hook(backward)
        return output

    x = Variable("a", "first", requires_grad=True)
    verdict = misused("refused feedback", (x, "b"), function, feedback=("no",))

    assert verdict.status is Status.HOLDS
    assert verdict.finding.details["call"].endswith(".backward(Variable('no'))")


def test_a_refused_call_that_changes_a_variable_is_caught():
    def function(x, y, mark="!"):
        x.data = "changed"
        raise TypeError("refused too late")

    verdict = misused("too late", (Variable("a", requires_grad=True), "b"), function)

    assert verdict.status is Status.BROKEN
    assert "was refused after a change" in verdict.finding.message
