"""`--record` keeps the verdicts of a spec when a run has another spec of that name."""

import pytest

from forked import OURS_ALONE, python
from gradspec.report import read_record

ODD = """
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec


class Squared(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * x * y_bar


def square(x):
    return x * x


def cases(make):
    yield Case(name="of 3", args=(make(3),))


SQUARED = FunctionSpec(
    name="squared", function=Squared.apply, primal=square, surrogate=square, wrt=("x",), cases=cases
)
"""
EVEN = ODD.replace("3 * x", "2 * x")
RECORD = ("--law", "vjp", "--record", "r.json")


@pytest.fixture
def files(folder):
    for home, text in (("first", ODD), ("second", EVEN)):
        (folder / home).mkdir()
        (folder / home / f"{home}_ops.py").write_text(text)
    return folder


@pytest.mark.parametrize("more", [(), ("--fresh",), ("--seed", "1")], ids=["again", "fresh", "another seed"])
def test_a_check_of_another_spec_of_the_same_name_is_refused(gradspec, files, more):
    gradspec("check", "first/first_ops.py", *RECORD)
    before = (files / "r.json").read_bytes()
    result = gradspec("check", "second/second_ops.py", *RECORD, *more)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "Error: two specs are called 'squared' (first/first_ops.py:SQUARED, which r.json holds, and "
        "second/second_ops.py:SQUARED): rename the second, or give another --record\n"
    )
    assert (files / "r.json").read_bytes() == before


def test_a_run_that_drops_the_other_spec_is_not_refused(gradspec, files):
    codes = [
        gradspec("check", target, *RECORD, *more).exit_code
        for target, more in (("first/first_ops.py", ()), ("second/second_ops.py", ("--prune",)))
    ]

    assert codes == [1, 0]
    assert read_record(files / "r.json").sheets["squared"]["path"] == "second/second_ops.py:SQUARED"


def test_an_audit_of_another_function_of_the_same_name_is_refused(gradspec, files):
    words = [
        ("audit", f"{home}/{home}_ops.py:Squared", "--case", "(randn(3),)", "--law", "surrogate", "--record", "r.json")
        for home in ("first", "second")
    ]
    results = [gradspec(*one) for one in words]

    assert [one.exit_code for one in results] == [1, 2]
    assert results[1].stderr.startswith("Error: two specs are called 'Squared' (first/first_ops.py:Squared, which ")
    assert gradspec("show", "r.json").exit_code == 1
    assert "; 0 measured in " in gradspec(*words[0]).stderr


def test_two_specs_of_one_name_in_one_file_are_told_apart(gradspec, files):
    text = EVEN.replace("def square", "from dataclasses import replace\n\n\ndef square")
    (files / "both.py").write_text(f"{text}\nTWICE = replace(SQUARED, primal=lambda x: 2 * x)\n")
    codes = [gradspec("check", f"both:{name}", *RECORD).exit_code for name in ("SQUARED", "TWICE", "SQUARED")]

    assert codes == [0, 2, 0]


def edited(files):
    file = files / "first" / "first_ops.py"
    file.write_text(file.read_text().replace("of 3", "of three"))
    return "first/first_ops.py"


def moved(files):
    (files / "first" / "first_ops.py").rename(files / "moved.py")
    return "moved.py"


def cut_and_pasted(files):
    (files / "first" / "first_ops.py").rename(files / "moved.py")
    (files / "first" / "first_ops.py").write_text("from gradspec import Case\n")
    return "moved.py"


def left_as_an_import(files):
    (files / "first" / "first_ops.py").rename(files / "moved.py")
    (files / "first" / "first_ops.py").write_text("from moved import SQUARED\n__all__ = ['SQUARED']\n")
    return "moved.py"


def variable_renamed(files):
    file = files / "first" / "first_ops.py"
    file.write_text(file.read_text().replace("SQUARED", "SQUARE"))
    return "first/first_ops.py"


def by_module(files):
    return "first.first_ops:SQUARED"


def by_its_name(files):
    return "first/first_ops.py:squared"


def by_an_absolute_path(files):
    return str(files / "first" / "first_ops.py")


def by_another_module(files):
    (files / "listed.py").write_text("from first.first_ops import SQUARED\n")
    return "listed"


@pytest.mark.parametrize(
    "asked",
    [
        edited,
        moved,
        cut_and_pasted,
        left_as_an_import,
        variable_renamed,
        by_module,
        by_its_name,
        by_an_absolute_path,
        by_another_module,
    ],
)
def test_the_same_spec_is_not_refused(files, asked):
    words = ("-m", "gradspec", "check")
    assert python(*words, "first/first_ops.py", *RECORD).returncode == 1
    result = python(*words, asked(files), *RECORD)

    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert " cells are current; " in result.stderr


def test_a_record_of_another_folder_is_not_refused(gradspec, files, monkeypatch):
    with monkeypatch.context() as context:
        context.chdir(files / "first")
        gradspec("check", "first_ops.py", "--law", "vjp", "--record", "../r.json")
    again = gradspec("check", "first/first_ops.py", *RECORD)

    assert "; 0 measured in " in again.stderr


def test_pytest_refuses_another_spec_of_the_same_name(gradspec, files):
    gradspec("check", "first/first_ops.py", *RECORD)
    before = (files / "r.json").read_bytes()
    words = ("--gradspec", "second/second_ops.py", "--gradspec-law", "vjp", "--gradspec-record", "r.json")
    result = python("-m", "pytest", "-p", "no:cacheprovider", *OURS_ALONE, *words)

    assert result.returncode == 4
    assert "gradspec: two specs are called 'squared' (first/first_ops.py:SQUARED, which r.json holds" in (
        result.stdout + result.stderr
    )
    assert (files / "r.json").read_bytes() == before
