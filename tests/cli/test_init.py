"""`gradspec init`: a spec, a test and a page, written from calls of a function."""

import contextlib
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from gradspec.cli import main

OPS = """
import torch

class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round() + 0.25

    @staticmethod
    def backward(ctx, grad):
        return grad

class Counts(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Counts.calls += 1
        return x + Counts.calls

    @staticmethod
    def backward(ctx, grad):
        return grad


class Draws(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + torch.rand_like(x)

    @staticmethod
    def backward(ctx, grad):
        return grad

class LSQ(RoundSTE):
    pass

class Raises(RoundSTE):
    @staticmethod
    def forward(ctx, x):
        raise KeyError("table")

LAYER = torch.nn.Linear(3, 2)

def plain(x):
    return x.round() + 0.25

def soft(x):
    return x
"""
CALL = ("--case", "(randn(2, 3),)", "--case", "(tensor([0.5]),)")


@pytest.fixture
def init(gradspec, folder):
    (folder / "ops.py").write_text(OPS)
    return lambda *words: gradspec("init", *words)


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A folder in which `init` has written its files: it audits the function for that, which takes seconds."""
    folder = tmp_path_factory.mktemp("init")
    (folder / "ops.py").write_text(OPS)
    before, path = set(sys.modules), [*sys.path]
    with contextlib.chdir(folder):
        assert CliRunner().invoke(main, ["init", "ops.py:RoundSTE", *CALL]).exit_code == 0
    sys.path[:] = path
    for name in set(sys.modules) - before:  # another test has an `ops.py` of its own
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    return folder


@pytest.fixture
def written(once, folder):
    """The same files, in the folder of the test."""
    shutil.copytree(once, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.slow
def test_what_is_written_is_checked_and_says_what_is_still_to_be_said(written, gradspec):
    spec = (written / "round_ste_spec.py").read_text()
    checked = gradspec("check", "round_ste_spec.py", "--law", "primal", "--law", "vjp", "--law", "ctx_clean")

    assert "yield read_case('(randn(2, 3),)')\n    yield read_case('(tensor([0.5]),)')" in spec
    assert "primal=stand_in(lambda x: RoundSTE.apply(x)),  # TODO" in spec
    assert "surrogate=lambda x: x,  # agrees with every case" in spec
    assert (written / "round_ste.md").read_text() == "# RoundSTE\n\n```{gradspec-function} RoundSTE\n```\n"
    assert checked.exit_code == 0
    assert "4 laws hold" not in checked.stdout
    assert "2 laws hold, 1 not measured" in checked.stdout


@pytest.mark.slow
def test_the_page_of_an_operator_is_found_by_its_own_directive(gradspec, folder):
    done = gradspec("init", "gradspec.operators:gradspec::grad_factor", "--case", "(randn(2, 3), 0.5)")

    assert done.exit_code == 0, done.output
    assert "```{gradspec-operator} gradspec::grad_factor" in (folder / "gradspec_grad_factor.md").read_text()
    assert "import gradspec.operators  # registers" in (folder / "gradspec_grad_factor_spec.py").read_text()
    assert "TODO" not in done.stdout + (folder / "gradspec_grad_factor_spec.py").read_text()
    assert "\nNow: gradspec check gradspec_grad_factor_spec.py" in done.stdout


@pytest.mark.slow
def test_the_written_test_is_one_that_pytest_runs(written, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(written), *sys.path])
    scope = {}
    exec((written / "test_round_ste_spec.py").read_text(), scope)

    (mark,) = scope["test_laws"].pytestmark
    assert [spec.name for spec in mark.args[0]] == ["RoundSTE"]


PACKAGE = """
import torch

from pack.constants import THREE

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**THREE

    @staticmethod
    def backward(ctx, grad):
        return THREE * ctx.saved_tensors[0] ** (THREE - 1) * grad
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "into"),
    [
        ("pack.ops:Cube", ("--into", "specs")),
        ("pack/ops.py:Cube", ()),
        ("pack/ops.py:Cube", ("--into", "tests/specs")),
    ],
)
def test_the_written_test_passes_for_a_package_that_is_not_installed(tmp_path, target, into):
    (tmp_path / "pack").mkdir()
    for name, text in (("__init__", ""), ("constants", "THREE = 3\n"), ("ops", PACKAGE)):
        (tmp_path / "pack" / f"{name}.py").write_text(text)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*words, where):
        return subprocess.run([sys.executable, *words], cwd=where, capture_output=True, text=True, check=False)

    done = run("-m", "gradspec", "init", target, "--case", "(randn(3),)", *into, where=tmp_path)
    assert done.returncode == 0, done.stderr
    (test,) = tmp_path.rglob("test_cube_spec.py")
    # As the command `pytest` does, Python looks for nothing in the working directory.
    pytest_ = ("-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "inputs_untouched")
    told = run(*pytest_, str(test), where=elsewhere)
    assert "1 passed" in told.stdout, told.stdout + told.stderr
    spec = str(test.with_name("cube_spec.py"))
    checked = run("-m", "gradspec", "check", spec, "--law", "inputs_untouched", where=elsewhere)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
def test_a_file_that_is_there_is_kept_unless_forced(init, folder):
    (folder / "round_ste.md").write_text("mine")
    refused = init("ops.py:RoundSTE", *CALL)
    kept = (folder / "round_ste.md").read_text()
    forced = init("ops.py:RoundSTE", *CALL, "--force")

    assert (refused.exit_code, forced.exit_code) == (2, 0)
    assert "round_ste.md is there already: --force overwrites it, --into writes elsewhere" in refused.stderr
    assert kept == "mine"
    assert (folder / "round_ste.md").read_text().startswith("# RoundSTE")


def test_what_cannot_be_written_is_a_todo_and_not_a_refusal(init, folder):
    result = init("ops.py:Counts", *CALL)

    assert result.exit_code == 0
    assert "TODO in the proposed spec: give what it keeps as an argument" in result.output
    assert "Complete what is marked TODO in counts_spec.py, then: gradspec check counts_spec.py" in result.output
    assert "# TODO: give what it keeps" in (folder / "counts_spec.py").read_text()


@pytest.mark.slow
def test_the_spec_of_a_function_that_draws_passes_its_own_check(init, folder, gradspec):
    result = init("ops.py:Draws", *CALL)
    text = (folder / "draws_spec.py").read_text()
    checked = gradspec(
        "check", "draws_spec.py", "--law", "declared_draws", "--law", "surrogate", "--law", "retained_graph"
    )

    assert result.exit_code == 0
    assert "    noise='replayed',  # calls are compared with the same draws\n" in text
    assert (checked.exit_code, "3 laws hold" in checked.output) == (0, True), checked.output


def test_a_function_that_cannot_be_called_is_refused_with_the_reason(init, folder):
    result = init("ops.py:Raises", *CALL)

    assert result.exit_code == 2
    assert "ops.py:Raises cannot be judged: a plain call raises KeyError: 'table'" in result.stderr
    assert not (folder / "raises_spec.py").exists()


@pytest.mark.slow
def test_what_init_writes_of_a_name_in_capitals_is_found_by_its_test(init, folder, gradspec):
    done = init("ops.py:LSQ", *CALL, "--reference", "ops.py:plain", "--surrogate", "ops.py:soft")
    text = (folder / "lsq_spec.py").read_text()

    assert done.exit_code == 0, done.output
    assert "from ops import LSQ, plain, soft  # keep the spec beside ops.py\n" in text
    assert "LSQ_SPEC = FunctionSpec(" in text
    assert "from lsq_spec import LSQ_SPEC\n" in (folder / "test_lsq_spec.py").read_text()
    assert "TODO" not in text
    assert gradspec("check", "lsq_spec.py", "--law", "primal", "--law", "vjp").exit_code == 0


@pytest.mark.slow
def test_a_module_gets_the_page_of_one(init, folder):
    done = init("ops.py:LAYER", "--case", "(randn(4, 3),)")

    assert done.exit_code == 0, done.output
    assert (folder / "layer.md").read_text() == "# LAYER\n\n```{gradspec-module} LAYER\n```\n"
    assert "LAYER_SPEC = ModuleSpec(" in (folder / "layer_spec.py").read_text()
