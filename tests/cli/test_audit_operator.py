"""`gradspec audit mylib::scale`: an operator by its name, all of a namespace, and the spec that is proposed."""

import pytest

OPS = """
import torch
from torch import Tensor

if not hasattr(torch.ops.gradspec_audited, "scale"):

    @torch.library.custom_op("gradspec_audited::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor

    scale.register_fake(lambda x, factor: torch.empty_like(x))
    scale.register_autograd(
        lambda ctx, grad: (grad * ctx.factor, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
    )

    @torch.library.custom_op("gradspec_audited::count", mutates_args=("state",))
    def count(x: Tensor, state: Tensor) -> Tensor:
        state.add_(x.numel())
        return x.sum()

    count.register_fake(lambda x, state: x.new_empty(()))

    @torch.library.custom_op("gradspec_audited::leaks", mutates_args=())
    def leaks(x: Tensor, weight: Tensor) -> Tensor:
        weight.add_(1)
        return x + 1

    leaks.register_fake(lambda x, weight: torch.empty_like(x))
"""


@pytest.fixture
def audit(gradspec, folder):
    (folder / "gradspec_audited.py").write_text(OPS)
    return lambda *words: gradspec("audit", *words)


def test_an_operator_is_found_in_the_module_of_its_namespace(audit, folder):
    found = audit("gradspec_audited::scale", "--case", "(randn(2, 3), 0.5)", "--law", "schema", "--proposal", "spec.py")

    assert found.exit_code == 0, found.output
    spec = (folder / "spec.py").read_text()
    assert "import gradspec_audited  # registers gradspec_audited::scale" in spec
    assert "GRADSPEC_AUDITED_SCALE = OperatorSpec(" in spec
    assert "primal=lambda x, factor: factor * x," in spec


def test_the_proposal_imports_the_module_that_was_named_and_its_check_agrees(audit, gradspec, folder):
    (folder / "gradspec_audited_kit.py").write_text("import gradspec_audited\n")
    scale, beside = "gradspec_audited::scale", "keep the spec beside gradspec_audited.py"
    asked = {
        f"gradspec_audited_kit:{scale}": f"import gradspec_audited_kit  # registers {scale}",
        f"gradspec_audited.py:{scale}": f"import gradspec_audited  # registers {scale}; {beside}",
        "gradspec.operators:gradspec::grad_factor": "import gradspec.operators  # registers gradspec::grad_factor",
    }
    for number, (target, line) in enumerate(asked.items()):
        file = f"proposed_{number}.py"
        audit(target, "--case", "(randn(2, 3), 0.5)", "--law", "schema", "--proposal", file)
        checked = gradspec("check", file, "--law", "schema", "--law", "primal", "--law", "vjp")

        assert line in (folder / file).read_text().splitlines()
        assert checked.exit_code == 0, checked.output


def test_a_file_that_is_no_module_is_to_be_renamed(audit, folder):
    (folder / "1 audited.py").write_text("import gradspec_audited\n")
    found = audit("1 audited.py:gradspec_audited::scale", "--case", "(randn(2, 3), 0.5)", "--law", "schema")

    assert "# TODO: rename 1 audited.py, which is not the name of a module, and import it for gradspec" in found.stdout
    assert "cannot be imported" not in found.stdout


def test_what_an_operator_writes_undeclared_is_a_finding(audit):
    found = audit("gradspec_audited.py:gradspec_audited::leaks", "--case", "(randn(2), randn(2))", "--law", "schema")

    assert found.exit_code == 1
    assert "the operator writes to `weight`, and its schema does not say so" in " ".join(found.stdout.split())


def test_an_operator_that_writes_as_declared_is_audited_and_its_spec_is_proposed(audit):
    found = audit("gradspec_audited::count", "--case", "(randn(2), randn(1))", "--law", "schema", "--law", "layout")

    assert found.exit_code == 0, found.output
    assert "stand_in(OperatorSpec.called('gradspec_audited::count'))" in found.stdout
    assert "No gradient reaches any argument" in found.stdout


def test_every_operator_of_a_namespace_is_in_the_table(audit):
    found = audit("--all", "gradspec_audited::", "--law", "schema")

    assert found.exit_code == 1
    for name in ("scale", "count", "leaks"):
        assert f"gradspec_audited::{name}" in found.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gradspec_audited::nothing",), "there is no operator gradspec_audited::nothing: name the module too"),
        (("gradspec_audited.py:other::scale",), "there is no operator other::scale"),
        (("gradspec_audited::",), "names no operator"),
    ],
)
def test_an_operator_that_is_not_there_is_one_line(audit, words, said):
    found = audit(*words, "--case", "randn(2)")

    assert found.exit_code == 2
    assert said in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
