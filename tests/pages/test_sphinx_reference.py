"""The reference of each extension lists what the extension registers, and nothing else."""

from __future__ import annotations

import re

from gradspec.sphinx_ext._setup import DIRECTIVES
from gradspec.sphinx_ext.domain._domain import GradspecDomain
from gradspec_lab.sphinx import _setup as laboratory
from pages.blocks import DOCS, ROOT

PAGE = (DOCS / "reference" / "sphinx.md").read_text(encoding="utf-8")
LABORATORY = (ROOT / "src/gradspec_lab/sphinx/README.md").read_text(encoding="utf-8")


def first_cells(page: str, head: str) -> set[str]:
    """Return the names in code of the first column of the table whose first column is called so."""
    _, _, rows = page.partition(f"| {head} |")
    table, _, _ = rows.partition("\n\n")
    return {name for line in table.splitlines() for name in re.findall(r"`([\w:-]+)`", line.split("|")[1])}


def test_that_every_directive_is_listed() -> None:
    # The graph of a text is an entry point of the package.
    assert first_cells(PAGE, "directive") == {*DIRECTIVES, "gradspec-graph"}
    assert first_cells(LABORATORY, "directive") == set(laboratory.DIRECTIVES)


def test_that_every_role_is_listed() -> None:
    # The role `number` is put into the domain by the laboratory.
    assert first_cells(PAGE, "role") == {
        f"gradspec:{role}" for role in GradspecDomain.roles if role not in laboratory.ROLES
    }
    assert [role for role in laboratory.ROLES if f"`gradspec:{role}`" not in LABORATORY] == []
