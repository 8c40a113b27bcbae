"""The tables of a campaign: what training comes to, and each function that is wrong, with why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

from gradspec_lab.campaigns.packages._summary import classes, counts, read_campaign, summary_text
from sphinx_ext.handmade import Project, copied, with_the_laboratory

PAGE = "# Campaign\n\n```{gradspec-campaign} campaign.json\n```\n"
COMMITTED = Path(__file__).parents[2] / "docs" / "records" / "campaign.json"


def built_of(folder: Path, text: str) -> Any:
    project: Project = with_the_laboratory(copied("test-function", folder))
    (project.source / "campaign.json").write_text(text, encoding="utf-8")
    (project.source / "campaign.md").write_text(PAGE, encoding="utf-8")
    with (project.source / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n```{toctree}\ncampaign\n```\n")
    return project.build()


def test_the_wrong_functions_are_listed_with_what_is_wrong(tmp_path: Path) -> None:
    content = read_campaign(COMMITTED)
    built = built_of(tmp_path, COMMITTED.read_text(encoding="utf-8"))
    soup = BeautifulSoup(built.html("campaign"), "html.parser")
    counted, wrong = soup.select("table")

    rows = {row[0]: int(row[1]) for tr in counted.select("tbody tr") if (row := [td.get_text() for td in tr("td")])}
    assert sum(rows.values()) == content["counts"]["functions"]
    assert rows["found: wrong"] == content["counts"]["classes"]["wrong"] == len(wrong.select("tbody tr"))
    assert "peft 0.21.2" in wrong.get_text()
    why = classes()["peft.tuners.loha.layer:HadaWeightCP"]["why"]
    assert why in wrong.get_text()


def test_a_summary_that_was_edited_is_not_shown(tmp_path: Path) -> None:
    content = read_campaign(COMMITTED)
    content["packages"] = content["packages"][1:]
    assert counts(content["packages"]) != content["counts"]
    built = built_of(
        tmp_path, summary_text({k: v for k, v in content.items() if k not in ("schema", "kind", "checksum")})
    )

    assert "its counts are not those of its rows" in built.warnings[0]
    assert "not measured" in built.html("campaign")
