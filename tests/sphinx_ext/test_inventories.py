"""`gradspec_inventories`: links to other documentation without a network, and what is wrong with a list of them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from sphinx.errors import ConfigError
from sphinx.util.inventory import InventoryFile

from gradspec.sphinx_ext._inventories import inventory
from sphinx_ext.handmade import copied

CONF = """
gradspec_inventories = {"theirs": ("https://theirs.example/", "theirs.txt")}
nitpicky = True
"""
INTERSPHINX = 'extensions.append("sphinx.ext.intersphinx")\n'
LIST = "# their names\n\ntheirs.thing py:class api.html#$\n"


def test_a_list_is_read_by_sphinx_as_an_inventory() -> None:
    found = InventoryFile.load(io.BytesIO(inventory(LIST, "theirs")), "https://theirs.example", "/".join)

    assert list(found["py:class"]) == ["theirs.thing"]


def test_a_line_of_another_form_is_named_by_its_number() -> None:
    with pytest.raises(
        ConfigError, match=r"^theirs.txt:3: 'theirs.thing py:class' is not of the form NAME ROLE ADDRESS"
    ):
        inventory("# their names\n\ntheirs.thing py:class\n", "theirs", where="theirs.txt")


@pytest.mark.parametrize(
    ("conf", "text", "message"),
    [
        (CONF, LIST, "gradspec_inventories needs sphinx.ext.intersphinx among the extensions"),
        (INTERSPHINX + CONF, None, "gradspec_inventories['theirs']: there is no "),
        (INTERSPHINX + CONF, "theirs.thing\n", "theirs.txt:1: 'theirs.thing' is not of the form NAME ROLE ADDRESS"),
    ],
    ids=["no intersphinx", "no file", "a line of one word"],
)
def test_a_build_with_a_wrong_list_says_so(tmp_path: Path, conf: str, text: str | None, message: str) -> None:
    project = copied("test-math", tmp_path)
    settings = project.source / "conf.py"
    settings.write_text(settings.read_text("utf-8") + conf, encoding="utf-8")
    if text is not None:
        (project.source / "theirs.txt").write_text(text, encoding="utf-8")
    built = project.build()

    assert built.returncode == 1  # with -W
    assert message in "\n".join(built.warnings)


def test_a_name_of_a_list_becomes_a_link(tmp_path: Path) -> None:
    project = copied("test-math", tmp_path)
    settings = project.source / "conf.py"
    settings.write_text(settings.read_text("utf-8") + INTERSPHINX + CONF, encoding="utf-8")
    (project.source / "theirs.txt").write_text(LIST, encoding="utf-8")
    (page,) = project.source.glob("index.*")
    role = "{py:class}`theirs.thing`" if page.suffix == ".md" else ":py:class:`theirs.thing`"
    page.write_text(f"{page.read_text('utf-8')}\n\n{role}\n", encoding="utf-8")
    built = project.build()

    assert (built.returncode, built.warnings) == (0, [])
    assert 'href="https://theirs.example/api.html#theirs.thing"' in built.html()
