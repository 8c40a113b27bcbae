"""The page on sharding: its scripts run under torchrun, and its table is what the formulas give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from distributed.test_costs import costs as costs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/shard-a-memory-bank.md").read_text(encoding="utf-8")


def torchrun(ranks: int, script: str, *arguments: str) -> str:
    """Return what a script prints, run by so many ranks."""
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), f"docs/examples/{script}"]
    command = [sys.executable, *words, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_bank_is_trained_and_goes_on_from_its_checkpoint_with_other_ranks(tmp_path: Path) -> None:
    first = torchrun(2, "sharded/train.py", str(tmp_path / "bank"))
    assert first.endswith("500 rows of 1000\n")
    again = torchrun(3, "sharded/train.py", str(tmp_path / "bank"))
    assert again.endswith("334 rows of 1000\n")
    before, after = (float(said.split()[1].rstrip(",")) for said in (first, again))
    assert after < before, "it went on, rather than starting again"


def test_a_classifier_is_trained() -> None:
    said = torchrun(2, "sharded/classify.py")
    assert said.endswith("500 classes of 1000\n")
    assert float(said.split()[1].rstrip(",")) < 6.8, "it began at log 1000 = 6.9"


def test_the_table_of_the_page_is_what_the_formulas_give(costs) -> None:
    assert costs.table() in PAGE
