"""A default that words state is the one of the signature, in a spec's arguments and in a docstring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gradspec.report import Report
from gradspec.sphinx_ext.page._defaults import stated_default, wrong_defaults
from sphinx_ext.handmade import SHEET, Project, report
from sphinx_ext.test_divergence import fails_twice


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("The factor (default: 0.5).", "0.5"),
        ("The factor. Default: `None`.", "None"),
        ("Defaults to 'mean'.", "'mean'"),
        ('the default is "sum"', '"sum"'),
        ("a step (default ``1e-3``)", "1e-3"),
        ("default -2.", "-2"),
        ("By default the batch is whole.", None),
        ("The default device.", None),
    ],
)
def test_a_default_is_read_out_of_a_sentence(text: str, stated: str | None) -> None:
    assert stated_default(text) == stated


def sheet(text: str) -> Mapping[str, Any]:
    x, f = SHEET["arguments"]
    return {**SHEET, "arguments": [x, {**f, "text": text}]}


@pytest.mark.parametrize("text", ["Default: 1.0.", "Default: 1.", "(default `1.0`)", "No word on it."])
def test_a_true_default_is_none_of_our_business(text: str) -> None:
    assert list(wrong_defaults(sheet(text))) == []


def test_a_default_of_an_argument_that_has_none_is_wrong() -> None:
    x, f = SHEET["arguments"]
    stated = {**SHEET, "arguments": [{**x, "text": "Default: 0."}, f]}
    assert list(wrong_defaults(stated)) == ["the words on x say that its default is 0, and the signature has none"]


def with_text(made: Report, text: str) -> Report:
    return replace(made, sheets={"scale": sheet(text)})


def test_a_wrong_default_of_a_spec_fails_the_build_twice(project: Project) -> None:
    project.write(with_text(report(project), "The factor (default: 0.5)."))
    fails_twice(project, "default", "index.md:3:", "the words on f say that its default is 0.5", "signature says 1.0")


@pytest.mark.parametrize(
    "words",
    [
        ":param f: the factor (default: 0.5).",
        "Args:\n            f: the factor, which\n                defaults to 0.5",
        "Args:\n            f (float, default 0.5): the factor",
    ],
)
def test_a_wrong_default_of_a_docstring_fails_the_build_twice(project: Project, words: str) -> None:
    demo = project.source / "demo.py"
    text = demo.read_text(encoding="utf-8").replace('"""Return x."""', f'"""Return x.\n\n        {words}\n        """')
    demo.write_text(text, encoding="utf-8")
    conf = project.source / "conf.py"
    conf.write_text(conf.read_text(encoding="utf-8").replace("viewcode", "napoleon"), encoding="utf-8")
    line = next(i for i, line in enumerate(text.splitlines(), 1) if "0.5" in line)
    fails_twice(project, "default", f"{demo}:{line}: WARNING: docstring of demo.Scale.apply", "says 1.0")


def test_a_docstring_that_no_spec_documents_is_none_of_our_business_unless_asked(project: Project) -> None:
    with (project.source / "demo.py").open("a", encoding="utf-8") as demo:
        demo.write('\n\ndef other(f=1.0):\n    """Return f.\n\n    :param f: the factor (default: 0.5).\n    """\n')
        demo.write('\n\nclass Other:\n    """Return f.\n\n    :param f: the factor (default: 0.5).\n    """\n\n')
        demo.write("    apply = None\n\n    @staticmethod\n    def forward(ctx, x, f=1.0):\n        return x\n")
    with (project.source / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n```{eval-rst}\n.. autofunction:: demo.other\n.. autoclass:: demo.Other\n```\n")
    assert [line for line in project.build().warnings if "gradspec.default" in line] == []
    asked = project.build("-E", "-D", "gradspec_check_defaults=1").warnings
    for name in ("other", "Other"):
        said = f"docstring of demo.{name}: the words on f say that its default is 0.5"
        assert any(said in line for line in asked)
