"""What `gradspec init` writes is whole: the spec is checked, and its page is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sphinx_ext.handmade import Project

pytestmark = pytest.mark.slow

pytest.importorskip("torch")

MODULE = '''
"""A module of somebody else's."""

import torch


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


class halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, grad):
        return grad / 2


@torch.library.custom_op("doubling::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


twice.register_fake(torch.empty_like)
twice.register_autograd(lambda ctx, grad: 2 * grad)
'''
CONF = """
extensions = ["gradspec.sphinx_ext", "myst_parser"]
gradspec_records = "record.json"
html_theme = "basic"
root_doc = "{page}"
"""


REST = """
halve
=====

.. gradspec-function:: halve

:gradspec:spec:`halve`
"""


@pytest.mark.parametrize(
    ("target", "page", "shown", "rest"),
    [
        ("doubling:Twice", "twice", "Twice", ""),
        ("doubling::twice", "doubling_twice", "doubling::twice(Tensor x)", ""),
        ("doubling:halve", "halve", "halve", ""),  # its title is an id
        ("doubling:halve", "halve", 'href="#doubling.halve"', REST),
    ],
)
def test_the_page_that_init_writes_is_built(tmp_path: Path, target: str, page: str, shown: str, rest: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "doubling.py").write_text(MODULE, encoding="utf-8")
    (source / "conf.py").write_text(CONF.format(page=page), encoding="utf-8")
    check = ["check", f"{page}_spec.py", "--record", "record.json", "--law", "vjp", "--law", "inputs_untouched"]
    for words in (["init", target, "--case", "(randn(3),)"], check):
        done = subprocess.run([sys.executable, "-m", "gradspec", *words], cwd=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    if rest:
        (source / f"{page}.md").unlink()
        (source / f"{page}.rst").write_text(rest, encoding="utf-8")
    built = Project(source, ("warm_sphinx", "torch")).build()
    assert (built.returncode, built.warnings) == (0, [])
    html = built.html(page)
    assert shown in html
    assert "not measured" in html, "what only a finished spec can say is not said"
