"""One cause is one failure in pytest and in JUnit, as on the command line; what follows from it is skipped."""

import json
import re
from xml.etree import ElementTree

import pytest

from cli.test_pytest_plugin import run_pytest  # noqa: F401  # a fixture

LAWS = [
    word
    for law in ("vjp", "cotangents_untouched", "checkpoint", "second_order", "needs_input_grad", "layout")
    for word in ("--law", law)
]


def chosen(option):
    return [option if word == "--law" else word for word in LAWS]


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="one process"), pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.slow)]
)
def test_that_a_cause_is_one_failure(run_pytest, gradspec, workers):  # noqa: F811
    run = run_pytest("--gradspec", "one_factor", *chosen("--gradspec-law"), "-rsf", *workers)
    said = gradspec("check", "one_factor", *LAWS).stdout
    causes = re.findall(r"^(\w+) breaks `(\w+)` on case `(\w+)`", said, flags=re.MULTILINE)
    failed = re.findall(r"^FAILED (\w+)::(\w+)\[(\w+)\]", run.stdout, flags=re.MULTILINE)

    assert len(causes) == 3, "a wrong factor in each, and a cotangent that is written in one"
    assert sorted(failed) == sorted(causes), run.stdout
    assert "follows from `vjp`: broken: gradient of `x` under checkpoint differs in " in run.stdout
    assert "the cause of `vjp` on case `row`: broken: gradient of `x` " in run.stdout


@pytest.mark.parametrize("chosen_tests", ["layout", "(layout and matrix) or (vjp and row)"])
def test_that_a_follower_fails_where_the_test_of_its_root_does_not_run(run_pytest, chosen_tests):  # noqa: F811
    laws = ("--gradspec-law", "vjp", "--gradspec-law", "layout")
    run = run_pytest("--gradspec", "one_factor:SPEC", *laws, "-k", chosen_tests, "-rsf")

    assert ("FAILED gate::layout[" in run.stdout) == (chosen_tests == "layout"), run.stdout
    assert "1 failed, 1 skipped" in run.stdout
    assert "(this follows from vjp)" in run.stdout or chosen_tests != "layout"


def test_that_a_skipped_root_does_not_hide_its_follower(run_pytest, folder):  # noqa: F811
    lines = (
        "import pytest",
        "def pytest_collection_modifyitems(items):",
        "    for item in items:",
        "        if '::vjp[' in item.nodeid: item.add_marker(pytest.mark.skip(reason='not today'))",
    )
    (folder / "conftest.py").write_text("\n".join([*lines, ""]))
    laws = ("--gradspec-law", "vjp", "--gradspec-law", "layout")
    run = run_pytest("--gradspec", "one_factor:SPEC", *laws, "-rsf")

    assert "FAILED gate::layout[row]" in run.stdout, run.stdout


def test_that_a_cause_is_one_failure_of_a_test_function_too(run_pytest, folder):  # noqa: F811
    lines = ("import one_factor", "from gradspec_pytest import parametrize_with_laws")
    text = "\n".join([*lines, "@parametrize_with_laws([one_factor.SPEC])", "def test_laws(check): check()", ""])
    (folder / "test_own.py").write_text(text)
    run = run_pytest("test_own.py", *chosen("--gradspec-law"), "-rsf")

    assert re.findall(r"^FAILED \S+", run.stdout, flags=re.MULTILINE) == [
        "FAILED test_own.py::test_laws[gate::vjp[row]]"
    ]
    assert "follows from `vjp`: broken: " in run.stdout


def test_that_a_cause_is_one_failure_in_junit_one_result_and_one_annotation(gradspec, folder):
    files = ("junit=found.xml", "sarif=found.sarif", "github=found.txt")
    gradspec("check", "one_factor:SPEC", *LAWS, *(word for file in files for word in ("--format", file)))
    tests = ElementTree.parse(folder / "found.xml")
    failed = [case.get("name") for case in tests.findall(".//testcase[failure]")]
    skipped = {case.get("name"): case.find("skipped").get("message") for case in tests.findall(".//testcase[skipped]")}
    results = json.loads((folder / "found.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    errors = [line for line in (folder / "found.txt").read_text(encoding="utf-8").splitlines() if "::error" in line]

    assert failed == ["vjp[row]"]
    assert skipped["checkpoint[row]"].startswith("follows from `vjp`: broken: gradient of `x` under checkpoint")
    assert skipped["vjp[matrix]"].startswith("the cause of `vjp` on case `row`: broken: ")
    assert "Follow: " in tests.find(".//failure").text
    follows = ["second_order", "checkpoint", "layout"]
    assert [one["properties"]["follows"] for one in results if one["level"] == "error"] == [follows]
    assert [f"Follow: {', '.join(follows)}" in line for line in errors] == [True]
