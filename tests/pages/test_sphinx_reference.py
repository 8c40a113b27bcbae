"""The reference of the extension lists what the extension registers, and nothing else."""

from __future__ import annotations

import re

from gradspec.sphinx_ext._setup import DIRECTIVES, ROLES
from gradspec.sphinx_ext.domain._domain import GradspecDomain
from pages.blocks import DOCS

PAGE = (DOCS / "reference" / "sphinx.md").read_text(encoding="utf-8")


def first_cells(head: str) -> set[str]:
    """Return the names in code of the first column of the table whose first column is called so."""
    _, _, rows = PAGE.partition(f"| {head} |")
    table, _, _ = rows.partition("\n\n")
    return {name for line in table.splitlines() for name in re.findall(r"`([\w:-]+)`", line.split("|")[1])}


def test_that_every_directive_is_listed() -> None:
    assert first_cells("directive") == set(DIRECTIVES)


def test_that_every_role_is_listed() -> None:
    links = {role for role in GradspecDomain.roles if role not in ROLES}

    assert first_cells("role") == {f"gradspec:{role}" for role in links}
    for role in ROLES:
        assert f"`gradspec:{role}`" in PAGE
