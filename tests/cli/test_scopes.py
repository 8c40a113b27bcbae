"""A run fails by what it asks about: on every front end, and in every format."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from forked import python
from gradspec.cli import main
from gradspec.profile import ProfileError, load_profile

#: A Function that trains rightly and loses its second derivative, and its spec in five lines.
CUBE = """
import torch

from gradspec import Case, FunctionSpec


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x.detach() ** 2 * grad


def cases(make):
    yield Case(name="a row", args=(make(3),))


CUBE = FunctionSpec(name="cube", function=Cube.apply, primal=lambda x: x**3, wrt=("x",), cases=cases)
"""
FEW = ("--law", "primal", "--law", "vjp", "--law", "second_order", "--law", "vmap")
AUDIT = ("--case", "(randn(3),)", "--law", "surrogate", "--law", "second_order")


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    path = tmp_path / "cube.py"
    path.write_text(CUBE, encoding="utf-8")
    return path


def run(*words: str | Path) -> tuple[int, str]:
    """Return the exit code and the output of a command."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_a_spec_that_says_nothing_promises_training(cube: Path) -> None:
    code, said = run("check", f"{cube}:CUBE", *FEW)
    assert code == 0
    assert "Not asked about\n" in said
    assert "`second_order`, wrong silently: second derivative with respect to `x` differs in 3 of 3 elements" in said
    assert said.rstrip().endswith(
        "Nothing is wrong in what was asked about. Not asked about: higher derivatives (`second_order`); "
        "`--scope higher` asks."
    )


def test_what_is_named_is_asked_about_and_nothing_else(cube: Path) -> None:
    assert run("check", f"{cube}:CUBE", *FEW, "--scope", "training,func")[0] == 0
    for scope in ("higher", "training,higher", "all"):
        code, said = run("check", f"{cube}:CUBE", *FEW, "--scope", scope)
        assert code == 1, scope
        assert "Higher derivatives\n" in said
        assert "Wrong in higher derivatives (`second_order`)." in said


def test_an_audit_asks_about_training(cube: Path) -> None:
    assert run("audit", f"{cube}:Cube", *AUDIT)[0] == 0
    assert run("audit", f"{cube}:Cube", *AUDIT, "--scope", "all")[0] == 1
    assert run("audit", f"{cube}:Cube", *AUDIT, "--scope", "all", "--exit-zero")[0] == 0


def test_a_record_keeps_the_scopes_of_its_run_and_show_asks_anew(cube: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    assert run("check", f"{cube}:CUBE", *FEW, "--scope", "higher", "--record", record)[0] == 1
    assert run("show", record)[0] == 1
    assert run("show", record, "--scope", "training")[0] == 0


def test_the_formats_tell_what_is_asked_about_from_what_is_not(cube: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("junit", "sarif", "github", "badge", "html")}
    words = [f"--format={name}={path}" for name, path in files.items() if name != "html"]
    assert run("check", f"{cube}:CUBE", *FEW, *words, "--html", files["html"])[0] == 0
    (suite,) = ElementTree.parse(files["junit"]).getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    said = {case.get("name"): skipped.get("message") for case in suite if (skipped := case.find("skipped")) is not None}
    assert str(said["second_order[a row]"]).startswith("not asked about: broken: ")
    (result,) = json.loads(files["sarif"].read_text())["runs"][0]["results"]
    assert (result["level"], result["properties"]["scope"], result["properties"]["asked"]) == ("note", "higher", False)
    assert files["github"].read_text().startswith("::notice ")
    assert json.loads(files["badge"].read_text())["color"] == "brightgreen"
    assert "not asked about" in files["html"].read_text()


def test_pytest_skips_what_is_not_asked_about(cube: Path) -> None:
    options = ["-q", "-rs", "-p", "no:cacheprovider", "--gradspec-law", "vjp", "--gradspec-law", "second_order"]
    command = ["-m", "pytest", *options, "--gradspec", f"{cube}:CUBE"]

    def pytest_of(*more: str) -> tuple[int, str]:
        done = python(*command, *more, cwd=cube.parent)
        return done.returncode, done.stdout + done.stderr

    code, said = pytest_of()
    assert (code, "1 passed, 1 skipped" in said) == (0, True), said
    assert "not asked about: broken: second derivative" in said
    assert pytest_of("--gradspec-scope", "higher")[0] == 1
    code, said = pytest_of("--gradspec-scope", "hihger")
    assert (code, "no scope 'hihger': did you mean 'higher'?" in said) == (4, True), said


@pytest.mark.parametrize("command", ["check", "audit", "show"])
@pytest.mark.parametrize(
    ("given", "said"), [("trainin", "did you mean 'training'?"), ("xyz", "choose from training, "), ("", "choose from")]
)
def test_a_scope_that_does_not_exist_is_refused_in_one_line(
    command: str, given: str, said: str, cube: Path, tmp_path: Path
) -> None:
    record = tmp_path / "record.json"
    more = {"check": ["--record", record], "audit": ["--case", "(randn(3),)", "--record", record], "show": []}[command]
    target = {"check": f"{cube}:CUBE", "audit": f"{cube}:Cube", "show": record}[command]
    code, output = run(command, target, "--scope", given, *more)
    assert code == 2
    (line,) = output.strip().splitlines()
    assert said in line
    assert not record.exists()


def test_a_profile_names_scopes(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('scopes = ["training", "compile"]', encoding="utf-8")
    assert load_profile(str(path)).scopes == ("training", "compile")
    assert load_profile(str(path), scopes=("higher",)).scopes == ("higher",)
    path.write_text('scopes = ["trainin"]', encoding="utf-8")
    with pytest.raises(ProfileError, match="did you mean 'training'"):
        load_profile(str(path))


#: A Function whose gradient has a row that nobody writes, which training and transforms show alike.
EMPTY = """
import torch

from gradspec import Case, FunctionSpec


class Empty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        found = torch.empty_like(grad)
        found[1:] = 2 * grad[1:]
        return found


def cases(make):
    yield Case(name="a row", args=(make(3),))


EMPTY = FunctionSpec(name="empty", function=Empty.apply, primal=lambda x: 2 * x, wrt=("x",), cases=cases)
"""


def test_one_cause_is_told_by_a_law_that_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "no_numbers.py"
    path.write_text(EMPTY, encoding="utf-8")
    few = ("--law", "layout", "--law", "cotangent_layout", "--law", "compiled_autograd", "--law", "adjoint")
    code, said = run("check", f"{path}:EMPTY", *few)
    assert code == 1
    assert "memory that nobody wrote" in said
    assert "\nTraining\n" in said
    assert "\nForward mode\n" not in said
    last = said.rstrip().splitlines()[-1]
    assert last.startswith("Wrong in training (`")
    assert "forward mode" not in last
    code, said = run("check", f"{path}:EMPTY", *few, "--scope", "compile")
    assert "breaks `compiled_autograd`" in said or code == 0


def test_what_could_not_be_judged_is_not_called_wrong(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def broken(x):\n    raise RuntimeError('no kernel')\n", encoding="utf-8")
    code, said = run("audit", f"{path}:broken", "--case", "(randn(3),)")

    assert code == 1
    assert "Could not be judged: training (`primal`)." in said
    assert "Wrong in" not in said
