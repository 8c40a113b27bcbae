"""What the how-to says: a project may leave torch's compiler out of its builds, and its pages stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from sphinx_ext.handmade import copied

pytestmark = pytest.mark.slow

pytest.importorskip("torch")

MODULE = """\
import torch


{above}
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        return x * factor

    @staticmethod
    def backward(ctx, grad_y):
        return 2 * grad_y, None


{below}
"""
STATEMENT = {"above": "", "below": "torch.compiler.allow_in_graph(Twice)"}
DECORATOR = {"above": "@torch.compiler.allow_in_graph", "below": ""}
PAGE = ":orphan:\n\nTwice\n=====\n\n.. autoclass:: mocked.Twice\n   :members:\n   :undoc-members:\n"
#: Says at the end of a build whether the compiler was really loaded.
SETUP = """

def setup(app):
    import sys
    from pathlib import Path

    app.connect("build-finished", lambda app, error: (Path(app.outdir) / "loaded").write_text(
        str("torch._dynamo.eval_frame" in sys.modules)))
"""


def build(folder: Path, form: dict[str, str], *options: str) -> tuple[list[str], str, str]:
    """Return the warnings of a build, its page, and whether the compiler was loaded."""
    project = copied("test-replicas", folder)
    (project.source / "mocked.py").write_text(MODULE.format(**form), encoding="utf-8")
    (project.source / "twice.rst").write_text(PAGE, encoding="utf-8")
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write(SETUP)
    built = project.build(*options, cold=True)  # what is loaded is the question
    return built.warnings, built.html("twice"), (built.folder / "loaded").read_text(encoding="utf-8")


def test_without_the_compiler_the_page_is_the_same(tmp_path: Path) -> None:
    warnings, page, loaded = build(tmp_path / "whole", STATEMENT)
    assert (warnings, loaded) == ([], "True")
    assert 'id="mocked.Twice.forward"' in page
    assert build(tmp_path / "mocked", STATEMENT, "-D", "autodoc_mock_imports=torch._dynamo") == ([], page, "False")


def test_a_class_that_the_mock_stands_in_for_is_named(tmp_path: Path) -> None:
    warnings, _, _ = build(tmp_path, DECORATOR, "-D", "autodoc_mock_imports=torch._dynamo")
    assert any("[autodoc.mocked_object]" in line for line in warnings)
