"""The address of the repository is in one place, and every link to it is absent while it is not there."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from jinja2 import Environment

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "conf" / "templates" / "sidebar" / "project.html"
KNOWN = "https://github.com/somebody/gradspec"


def settings(folder: Path, repository: str) -> dict[str, Any]:
    """Return what `conf.py` sets if pyproject.toml names a repository, or none."""
    (folder / "conf").mkdir()
    shutil.copy(ROOT / "conf" / "conf.py", folder / "conf")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "\n[project.urls]\n" not in text, "the address is known now: read it here from pyproject.toml"
    urls = f'\n[project.urls]\nRepository = "{repository}"\n' if repository else ""
    (folder / "pyproject.toml").write_text(text + urls, encoding="utf-8")
    return runpy.run_path(str(folder / "conf" / "conf.py"))


def links(repository: str) -> list[str]:
    """Return where the foot of the navigation leads."""
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    context = {"version": "1.0", "pagename": "a/b", "content_root": "../", "repository": repository}
    soup = BeautifulSoup(template.render(pathto=lambda name, resource: f"../{name}", **context), "html.parser")
    assert soup.select_one("select option").get_text() == "1.0"
    assert soup.select_one("select")["data-root"] == "../"
    return [str(link["href"]) for link in soup.select("a")]


def test_without_an_address_no_page_links_the_repository(tmp_path: Path) -> None:
    conf = settings(tmp_path, "")
    assert conf["html_theme_options"] == {"top_of_page_buttons": []}
    assert links(conf["html_context"]["repository"]) == []


@pytest.mark.parametrize("written", [KNOWN, f"{KNOWN}/"])
def test_with_an_address_each_page_links_source_issues_and_its_own_file(tmp_path: Path, written: str) -> None:
    conf = settings(tmp_path, written)
    options = conf["html_theme_options"]
    assert options["top_of_page_buttons"] == ["edit"]
    assert (options["source_repository"], options["source_branch"]) == (KNOWN, "main")
    assert (ROOT / options["source_directory"] / "index.md").is_file()
    assert links(conf["html_context"]["repository"]) == [KNOWN, f"{KNOWN}/issues"]


def test_the_page_of_a_law_has_no_file_to_edit(tmp_path: Path) -> None:
    hide = settings(tmp_path, KNOWN)["_no_edit_of_what_a_build_writes"]
    for page, suffix in {"laws/vjp": "", "laws/index": ".md", "laws/kill-matrix": ".md", "index": ".md"}.items():
        context = {"page_source_suffix": ".md"}
        hide(None, page, "page.html", context, None)
        assert context["page_source_suffix"] == suffix, page
