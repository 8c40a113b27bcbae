"""The page on sharding: its scripts run under torchrun, and its table is what the formulas give."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributed.test_costs import costs as costs
from distributed.torchrun import torchrun

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/shard-a-memory-bank.md").read_text(encoding="utf-8")


def test_a_bank_is_trained_and_goes_on_from_its_checkpoint_with_other_ranks(tmp_path: Path) -> None:
    first = torchrun(2, "docs/examples/sharded/train.py", tmp_path / "bank")
    assert first.endswith("500 rows of 1000\n")
    again = torchrun(3, "docs/examples/sharded/train.py", tmp_path / "bank")
    assert again.endswith("334 rows of 1000\n")
    before, after = (float(said.split()[1].rstrip(",")) for said in (first, again))
    assert after < before, "it went on, rather than starting again"


def test_a_classifier_is_trained() -> None:
    said = torchrun(2, "docs/examples/sharded/classify.py")
    assert said.endswith("500 classes of 1000\n")
    assert float(said.split()[1].rstrip(",")) < 6.8, "it began at log 1000 = 6.9"


def test_the_table_of_the_page_is_what_the_formulas_give(costs) -> None:
    assert costs.table() in PAGE
