"""What the page on CUDA says of this site, and of a machine without a GPU, is so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from click.testing import CliRunner

from gradspec.cli import main
from pages.blocks import DOCS

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (DOCS / "how-to" / "run-on-cuda.md").read_text(encoding="utf-8")


def test_the_pages_take_from_the_record_whether_there_is_one() -> None:
    """No sentence that somebody types about it would be right before and after one is committed."""
    for page in ("how-to/run-on-cuda.md", "explanation/how-far-you-can-trust-this.md", "benchmarks.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        assert "{gradspec:cuda}" in text
        assert "No CUDA record" not in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here: the page speaks of machines without")
def test_without_cuda_the_command_says_so_and_writes_nothing(tmp_path: Path) -> None:
    assert "Without CUDA the command says so and\nwrites nothing" in PAGE
    record = tmp_path / "cuda.json"
    done = CliRunner().invoke(main, ["check", "gradspec.functions", "--profile", "cuda", "--record", str(record)])
    assert (done.exit_code, record.exists()) == (2, False)
    assert "cuda" in done.output.lower()
