"""The pages on Function answer first, name a law that checks the answer, and are all in the list of questions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradspec._record import read_experiment
from gradspec.laws import LAWS
from gradspec_lab.versions.questions import measured
from pages.blocks import DOCS

QUESTIONS = DOCS / "questions"
PAGES = sorted(path for path in QUESTIONS.glob("*.md") if path.stem != "index")
RECORDS = sorted((DOCS / "records" / "questions").glob("*.json"))


def title(text: str) -> str:
    """Return the title of a page, without the marks of code."""
    return text.partition("\n")[0].removeprefix("# ").replace("`", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_asks_answers_and_names_its_law(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    _, answer, *_, last = text.strip().split("\n\n")
    named = re.findall(r"\[`(\w+)`\]\(\.\./laws/(\w+)\.md\)", last)

    assert title(text).endswith("?")
    assert not answer.startswith(("```", "#", "-", "|"))
    assert last.startswith("**Checked by** the law")
    assert named
    assert all(shown == linked for shown, linked in named)
    assert {name for name, _ in named} <= {law.name for law in LAWS}


def test_the_list_of_questions_has_every_page_under_its_title() -> None:
    listed = re.findall(r"^- \[(.+)\]\((.+)\.md\)$", (QUESTIONS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert {(name, asked.replace("`", "")) for asked, name in listed} == {
        (page.stem, title(page.read_text(encoding="utf-8"))) for page in PAGES
    }


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_of_a_version_has_the_examples_of_the_pages_as_they_are(path: Path) -> None:
    recorded = read_experiment(path)
    now = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
    counts = {name: sum(line.startswith(">>>") for line in text.splitlines()) for name, text in now.items()}
    plain = {name: re.sub(r"^(>>>|\.\.\.) ?", "", text, flags=re.MULTILINE) for name, text in now.items()}

    assert recorded["examples"] == counts, "measure it again"
    assert [one for one in recorded["otherwise"] if one["code"] not in plain[one["page"]]] == [], "measure it again"


def test_an_example_that_prints_otherwise_is_recorded() -> None:
    found = measured("# Q\n\n```python\nx = 1\n```\n\n```python\n>>> x\n2\n>>> x + 1\n2\n>>> 1 / 0\n1\n```\n", "q.md")

    assert found == (
        3,
        [{"code": "x", "got": "1"}, {"code": "1 / 0", "got": "ZeroDivisionError: division by zero"}],
    )
