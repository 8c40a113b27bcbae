"""A document for LaTeX declares the signs of verdicts that it prints."""

from __future__ import annotations

import re

from gradspec.render import SIGNS
from sphinx_ext.handmade import Project

#: What LaTeX or Sphinx sets: those of Latin 1, and the check mark, which Sphinx replaces.
SET = {"✓", "±", "·"}


def test_each_sign_of_a_verdict_is_declared_before_the_preamble_of_the_project(project: Project) -> None:
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write('latex_elements = {"preamble": "% mine"}\n')
    made = project.build("-b", "latex")
    assert (made.returncode, made.warnings) == (0, [])
    (path,) = made.folder.glob("*.tex")
    preamble, _, document = path.read_text(encoding="utf-8").partition(r"\begin{document}")
    declared = {chr(int(code, 16)) for code in re.findall(r"\\DeclareUnicodeCharacter\{(\w+)\}\{\\ensure", preamble)}
    assert {sign for sign in SIGNS.values() if not sign.isascii()} - SET == declared
    assert preamble.index("% mine") > preamble.index("2298")
    assert set(document) & declared
