"""A rank that dies ends the others with an error, and ranks that start again end where nothing had happened."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from distributed.faults import PLACES
from distributed.pool import free_port
from gradspec.functions._sharded._ranks import LOST

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("faults.py")
STEPS = 6
Fault = list[object]
#: How many ranks are killed in all, two in each training; `nox -s lab -- faults` asks for more than a change does.
KILLS = int(os.environ.get("GRADSPEC_KILLS", "2"))


@pytest.mark.parametrize(
    ("name", "place", "said"),
    [
        ("SIGKILL", "before the loss", r"Connection (closed|reset) by peer"),
        ("SIGKILL", "before the update", r"Connection (closed|reset) by peer"),
        ("SIGSTOP", "before the loss", "Timed out waiting 5000ms"),
    ],
    ids=["killed before the loss", "killed before the update", "stopped"],
)
def test_a_rank_that_is_lost_ends_the_other_with_an_error(tmp_path: Path, name: str, place: str, said: str) -> None:
    faults = [[1, 2, place, name]]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    command = [sys.executable, str(SCRIPT), str(tmp_path), str(STEPS), "5", json.dumps(faults)]
    ranks = [
        subprocess.Popen(command, env={**os.environ, **where, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        _, words = ranks[0].communicate(timeout=120)  # the time-out of the group is 5 seconds
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert ranks[0].returncode != 0
    assert re.search(said, words), words
    assert LOST in words, words
    assert (tmp_path / "latest").read_text() == "2", "the steps before are saved"


def trained(folder: Path, faults: list[Fault]) -> torch.Tensor:
    """Return the bank at the end of a training by two ranks, that torchrun starts again after each fault."""
    folder.mkdir()
    elastic = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "3"]
    command = [sys.executable, *elastic, str(SCRIPT), str(folder), str(STEPS), "30", json.dumps(faults)]
    # Ranks that start again would find the addresses of those before them: pytorch issue 135712.
    env = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("fault*"))) == len(faults), f"not all of {faults} have happened"
    return torch.cat([torch.load(folder / f"rank{rank}.pt") for rank in range(2)])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> torch.Tensor:
    return trained(tmp_path_factory.mktemp("undisturbed") / "run", [])


def drawn(seed: int) -> list[Fault]:
    """Return two faults: steps, ranks and places at random."""
    rng = random.Random(seed)
    return [[rng.randrange(2), step, rng.choice(PLACES), "SIGKILL"] for step in rng.sample(range(STEPS), 2)]


@pytest.mark.parametrize("seed", range(KILLS // 2))
def test_ranks_that_are_killed_and_start_again_end_with_the_same_bank(
    undisturbed: torch.Tensor, tmp_path: Path, seed: int
) -> None:
    torch.testing.assert_close(trained(tmp_path / "run", drawn(seed)), undisturbed, rtol=0, atol=0)
