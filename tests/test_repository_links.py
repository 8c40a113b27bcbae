"""The address of the repository is in one place, and every link to it is absent while it is not there."""

from __future__ import annotations

import runpy
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from jinja2 import Environment

from gradspec.law import Law
from gradspec.laws import LAWS

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "conf" / "templates" / "sidebar" / "project.html"
#: In the theme that furo extends.
EDIT = "components/edit-this-page.html"
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


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what `conf.py` sets if pyproject.toml names a repository."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "src").symlink_to(ROOT / "src")
    return settings(folder, KNOWN)


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


def edited(conf: dict[str, Any], page: str) -> str:
    """Return where "edit this page" leads, by furo's own template; empty if the page has no such button."""
    folder = Path(find_spec("sphinx_basic_ng").origin).parent / "theme" / "basic-ng"
    template = Environment(autoescape=True).from_string((folder / EDIT).read_text(encoding="utf-8"))
    options = {f"theme_{name}": value for name, value in conf["html_theme_options"].items()}
    context = {**options, "pagename": page, "page_source_suffix": ".md", "_": str}
    conf["_edit_the_law"](None, page, "page.html", context, None)
    link = BeautifulSoup(template.render(context), "html.parser").a
    return str(link["href"]).strip() if link else ""


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_page_of_a_law_opens_the_file_of_the_law(law: Law, conf: dict[str, Any]) -> None:
    file = law.check.__module__.replace(".", "/")
    assert edited(conf, f"laws/{law.name}") == f"{KNOWN}/edit/main/src/{file}.py"


def test_another_page_opens_its_own_file_and_a_law_of_nobody_none(conf: dict[str, Any]) -> None:
    for page in ("index", "laws/index", "laws/kill-matrix", "how-to/add-a-law"):
        assert edited(conf, page) == f"{KNOWN}/edit/main/docs/{page}.md"
        assert (ROOT / "docs" / f"{page}.md").is_file()
    assert edited(conf, "laws/nonsense") == ""


def test_without_an_address_no_page_has_the_button(tmp_path: Path) -> None:
    conf = settings(tmp_path, "")
    assert [edited(conf, page) for page in ("index", "laws/vjp")] == ["", ""]
