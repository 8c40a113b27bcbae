"""The tables of a campaign: what training comes to, and each function that is wrong, with why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

from gradspec_lab.campaigns.packages._summary import (
    DANGERS,
    PROOFS,
    classes,
    counts,
    read_campaign,
    summary_text,
)
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


def test_the_wrong_functions_are_listed_with_what_is_wrong_and_a_script(tmp_path: Path) -> None:
    content = read_campaign(COMMITTED)
    built = built_of(tmp_path, COMMITTED.read_text(encoding="utf-8"))
    soup = BeautifulSoup(built.html("campaign"), "html.parser")
    counted, domains, runs = soup.select("table")
    entries = soup.select(".gradspec-entry")

    rows = {row[0]: int(row[1]) for tr in counted.select("tbody tr") if (row := [td.get_text() for td in tr("td")])}
    assert sum(rows.values()) == content["counts"]["functions"]
    assert rows["found: wrong"] == content["counts"]["classes"]["wrong"] == len(entries)
    numbers = [[td.get_text() for td in tr("td")] for tr in domains.select("tbody tr")]
    assert sum(int(row[2]) for row in numbers) >= content["counts"]["functions"]
    assert sum(int(row[3]) for row in numbers) == len(entries)
    assert len(runs.select("tbody tr")) == len(content["first_runs"])

    (entry,) = (one for one in entries if "HadaWeightCP" in one.get_text())
    assert entry.p.get_text().startswith("peft 0.21.2, HadaWeightCP: ")
    said = classes()
    assert said["peft.tuners.loha.layer:HadaWeightCP"]["why"].replace("`", "") in entry.get_text()
    proof = PROOFS / said["peft.tuners.loha.layer:HadaWeightCP"]["proof"]
    assert entry.pre.get_text() == proof.read_text(encoding="utf-8")


def test_what_is_most_dangerous_is_first(tmp_path: Path) -> None:
    built = built_of(tmp_path, COMMITTED.read_text(encoding="utf-8"))
    soup = BeautifulSoup(built.html("campaign"), "html.parser")
    order = [DANGERS.index(danger) for one in soup.select(".gradspec-entry") for danger in [_danger(one)]]
    assert order == sorted(order)
    assert len(set(order)) == len(DANGERS)


def _danger(entry: Any) -> str:
    package, function = entry.p.get_text().split(": ")[0].split(", ")
    said = classes().items()
    return next(
        row["danger"]
        for name, row in said
        if row["package"] == package.split()[0] and name.partition(":")[2].startswith(function) and "danger" in row
    )


def test_a_summary_that_was_edited_is_not_shown(tmp_path: Path) -> None:
    content = read_campaign(COMMITTED)
    content["packages"] = content["packages"][1:]
    assert counts(content["packages"]) != content["counts"]
    built = built_of(
        tmp_path, summary_text({k: v for k, v in content.items() if k not in ("schema", "kind", "checksum")})
    )

    assert "its counts are not those of its rows" in built.warnings[0]
    assert "not measured" in built.html("campaign")
