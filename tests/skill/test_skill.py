"""SKILL.md, followed to the letter on three functions: one that is sound, and two that are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from pages.blocks import read_blocks

pytestmark = pytest.mark.slow

SKILL = files("gradspec").joinpath("SKILL.md").read_text(encoding="utf-8")
BLOCKS = list(read_blocks(SKILL, "SKILL.md"))
OPS = """import torch


class {name}(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return {primal}

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return {backward}
"""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A function as somebody wrote it, and as it is mended; the same, where it is sound."""

    name: str
    primal: str
    surrogate: str
    backward: str
    mended: str
    likely: str = ""


WRITTEN = (
    Written(name="RoundSTE", primal="x.round()", surrogate="x", backward="grad_y", mended="grad_y"),
    Written(
        name="ClipSTE",
        primal="x.clamp(-1, 1)",
        surrogate="x.clamp(-1, 1)",
        backward="grad_y",
        mended="grad_y * (x.abs() <= 1)",
        likely="right with `return grad_y * (x.abs() <= 1)`",
    ),
    Written(
        name="Square",
        primal="x * x",
        surrogate="x * x",
        backward="x * grad_y",
        mended="2 * x * grad_y",
        likely="every element is off by the factor 0.5",
    ),
)


def commands() -> list[str]:
    return [block.text.strip() for block in BLOCKS if block.kind == "sh"]


@dataclass
class Follower:
    """Does what the skill says, in a folder."""

    folder: Path
    written: Written

    def write(self, backward: str) -> None:
        names = {"name": self.written.name, "primal": self.written.primal, "backward": backward}
        (self.folder / "ops.py").write_text(OPS.format(**names))

    def write_spec(self) -> None:
        (template,) = (block.text for block in BLOCKS if block.kind == "python")
        words = {"FUNCTION": self.written.name, "PRIMAL": self.written.primal, "SURROGATE": self.written.surrogate}
        for word, meant in words.items():
            assert word in template
            template = template.replace(word, meant)
        (self.folder / "ops_spec.py").write_text(template)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=env, capture_output=True, text=True, check=False, timeout=300
        )

    def failures(self, command: str) -> list[dict[str, str]]:
        done = self.run(command)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("written", WRITTEN, ids=lambda written: written.name)
def test_that_who_follows_it_finds_the_mistake_and_ends(written, tmp_path):
    follower, (quick, read, whole) = Follower(tmp_path, written), commands()
    follower.write(written.backward)
    follower.write_spec()
    first = follower.run(quick)
    assert first.returncode == (1 if written.likely else 0), first.stdout + first.stderr
    if written.likely:
        (failure,) = follower.failures(read)
        assert written.likely in failure["likely"]
        follower.write(written.mended)
        assert follower.run(failure["rerun"]).returncode == 0
        assert follower.run(quick).returncode == 0
        if written.name == "ClipSTE":
            (shown,) = (json.loads(block.text) for block in BLOCKS if block.kind == "json")
            assert failure == shown
    done = follower.run(whole)

    assert done.returncode == 0, done.stdout
    assert f"\n{written.name} on 1 case: " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Nothing is wrong in what was asked about.")
    assert follower.failures(read) == []


def test_that_a_spec_that_cannot_be_used_is_exit_code_2_and_one_line(tmp_path):
    follower = Follower(tmp_path, WRITTEN[0])
    follower.write_spec()  # without ops.py
    done = follower.run(commands()[0])

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_that_the_front_matter_names_the_skill():
    _, front, _ = SKILL.split("---\n", 2)

    assert [line.partition(":")[0] for line in front.splitlines()] == ["name", "description"]
