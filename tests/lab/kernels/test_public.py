"""Each published kernel computes the map that is written beside it."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
import torch

from gradspec_lab import kernels
from gradspec_lab.kernels._kernel import Kernel
from gradspec_lab.kernels.public import SOUND, UNSOUND

REQUIREMENTS = Path(kernels.__file__).with_name("requirements.txt")
PINS = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)


@functools.cache
def measured() -> dict[str, dict[str, Any]]:
    """What `prove` prints, in a process of its own: Triton's interpreter is chosen when Triton is imported."""
    for package in {kernel.package for kernel in SOUND.values()}:
        try:
            assert version(package) == PINS[package]
        except PackageNotFoundError:
            pytest.skip(f"{package} is not installed: see {REQUIREMENTS.name} beside the kernels")
    command = [sys.executable, "-m", "gradspec_lab.kernels", "prove"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line["name"]: line for line in map(json.loads, printed.splitlines())}


def test_there_are_enough_and_each_package_has_a_pin() -> None:
    assert len(SOUND) >= 15
    assert {kernel.package for kernel in (*SOUND.values(), *UNSOUND.values())} <= {*PINS}


@pytest.mark.parametrize("kernel", [pytest.param(kernel, id=name) for name, kernel in SOUND.items()])
def test_a_sound_kernel_computes_its_map(kernel: Kernel) -> None:
    assert torch.float32 in kernel.dtypes
    assert max(measured()[kernel.name]["gaps"].values()) < 1e-5


@pytest.mark.parametrize("kernel", [pytest.param(kernel, id=name) for name, kernel in UNSOUND.items()])
def test_an_unsound_one_does_not(kernel: Kernel) -> None:
    assert max(measured()[kernel.name]["gaps"].values()) > 1e-3


@pytest.mark.parametrize("kernel", [pytest.param(kernel, id=name) for name, kernel in SOUND.items()])
def test_inputs_are_finite_in_every_setting_and_two_draws_are_equal(kernel: Kernel) -> None:
    for shape in kernel.shapes:
        for scale in kernel.scales:
            for dtype in kernel.dtypes:
                first, second = (kernel.make(shape, dtype, scale, torch.Generator().manual_seed(3)) for _ in range(2))
                for a, b in zip(first, second, strict=True):
                    if isinstance(a, torch.Tensor) and a.is_floating_point():
                        assert a.dtype == dtype
                        assert torch.equal(a, b)
                        assert a.isfinite().all()
