"""What the page of benchmarks types by hand: the versions of the packages that ours is compared with."""

from __future__ import annotations

import re

from gradspec._record import read_experiment
from pages.blocks import DOCS

PAGE = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
RECORDS = sorted((DOCS / "records" / "benchmarks").glob("*.json"))


def test_a_version_on_the_page_is_that_of_a_record() -> None:
    known = " ".join(path.read_text(encoding="utf-8") for path in RECORDS)
    named = re.findall(r"(?:archai|brails|TextGrad)\s\d[\d.]*\d", PAGE)
    assert {name.split()[0] for name in named} == {"archai", "brails", "TextGrad"}
    assert [name for name in named if " ".join(name.split()) not in known] == []


def test_every_record_is_on_the_page() -> None:
    assert [path.name for path in RECORDS if f"{{gradspec-benchmark}} records/benchmarks/{path.name}" not in PAGE] == []


def test_no_measured_ratio_is_typed() -> None:
    prose = re.sub(r"\{gradspec:number\}`[^`]*`", "", PAGE)
    assert re.findall(r"\d[\d.]*\s?(?:times|%|bytes|seconds)", prose) == []


def test_a_number_of_calls_is_of_the_program_that_its_sentence_names() -> None:
    rows = read_experiment(DOCS / "records" / "benchmarks" / "text_calls.json")["measurements"]
    sentence = PAGE.partition("## What do calls side by side save?")[2]
    named = [rows[int(i)] for i in re.findall(r"text_calls\.json measurements\.(\d+)\.", sentence)]
    assert [(row["way"], row["calls"], row["max_concurrency"]) for row in named] == [
        ("gradspec.text", 17, 1),
        ("gradspec.text", 17, 16),
        ("TextGrad 0.1.8", 17, 1),
    ]
