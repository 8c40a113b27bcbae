"""A file of an exported program runs, with its gradient, where only `gradspec.operators` is imported."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gradspec.operators import grad_factor

LOADS = """
import sys
import torch
program = torch.export.load(sys.argv[1]).module()
x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
y = program(x)
y.sum().backward()
print(y.tolist(), x.grad.tolist())
"""


class Net(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return grad_factor(2 * x, -0.5)


@pytest.fixture(scope="module", params=["exported", pytest.param("taken apart", marks=pytest.mark.slow)])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with the program of `Net`."""
    program = torch.export.export(Net(), (torch.ones(3),))
    file = tmp_path_factory.mktemp("exported") / "net.pt2"
    with warnings.catch_warnings(action="ignore"):  # torch calls what it has deprecated itself
        torch.export.save(program if request.param == "exported" else program.run_decompositions(), file)
    return file


def run(program: str, file: Path) -> subprocess.CompletedProcess[str]:
    # What is asked is what a process imports: none that has imported it all before can answer.
    return subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_it_runs_with_its_gradient(saved: Path) -> None:
    done = run("import gradspec.operators" + LOADS, saved)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2.0, -4.0, 6.0] [-1.0, -1.0, -1.0]\n"


@pytest.mark.slow
def test_without_the_import_torch_refuses_to_load_it(saved: Path) -> None:
    done = run(LOADS, saved)

    assert done.returncode != 0
    assert "grad_factor" in done.stderr
