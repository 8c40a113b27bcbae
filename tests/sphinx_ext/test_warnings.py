"""Each type of warning is used, is documented where the page lists them, and stands on that page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradspec.sphinx_ext._warnings import GradspecWarning

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "src" / "gradspec" / "sphinx_ext"
CODE = {path: path.read_text(encoding="utf-8") for path in EXTENSION.rglob("*.py") if path.name != "_warnings.py"}
TESTS = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("kind", GradspecWarning)
def test_a_type_is_used_documented_and_tested(kind: GradspecWarning) -> None:
    assert any(f"GradspecWarning.{kind.name}" in text for text in CODE.values()), "no code warns of it"
    declared = (EXTENSION / "_warnings.py").read_text(encoding="utf-8")
    assert re.search(rf'    #: [^\n]+\n    {kind.name} = "{kind.value}"', declared), "it has no words"
    assert f'"{kind.value}"' in TESTS or f"gradspec.{kind.value}" in TESTS, "no test provokes it"


def test_the_page_lists_every_type() -> None:
    page = (ROOT / "docs" / "reference" / "sphinx.md").read_text(encoding="utf-8")
    assert ".. autoclass:: gradspec.sphinx_ext._warnings.GradspecWarning\n   :members:\n   :undoc-members:" in page


def test_nothing_warns_without_a_type() -> None:
    assert [path.name for path, text in CODE.items() if re.search(r"logger\.(warning|error)|logging\.", text)] == []
