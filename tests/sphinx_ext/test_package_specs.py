"""The table of specs of functions of packages."""

from __future__ import annotations

from pathlib import Path

from bs4 import BeautifulSoup

from gradspec_lab.campaigns.packages._specs_read import read_specs
from sphinx_ext.handmade import copied, with_the_laboratory

COMMITTED = Path(__file__).parents[2] / "docs" / "records" / "package_specs.json"


def test_each_function_has_a_row_with_what_is_found_first_in_its_wrong_variant(tmp_path: Path) -> None:
    project = with_the_laboratory(copied("test-function", tmp_path))
    (project.source / "specs.json").write_text(COMMITTED.read_text(encoding="utf-8"), encoding="utf-8")
    (project.source / "specs.md").write_text("# Specs\n\n```{gradspec-package-specs} specs.json\n```\n")
    with (project.source / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n```{toctree}\nspecs\n```\n")

    soup = BeautifulSoup(project.build().html("specs"), "html.parser")
    shown = [[cell.get_text() for cell in row("td")] for row in soup.select("tbody tr")]
    rows = read_specs(COMMITTED)["specs"]
    assert [row[1] for row in shown] == [str(row["lines"]) for row in rows]
    assert all(one["right"]["name"] in row[0] for row, one in zip(shown, rows, strict=True))
    assert all(one["wrong"]["laws"][0] in row[3] for row, one in zip(shown, rows, strict=True))
    assert f"{len(rows)} functions of " in soup.select_one(".gradspec-detail").get_text()
