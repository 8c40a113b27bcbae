"""Each published kernel computes the map that is written beside it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import torch

from gradspec_lab import kernels
from gradspec_lab.kernels._kernel import Kernel, derive, random_cotangents, upcast
from gradspec_lab.kernels._truth import distance
from gradspec_lab.kernels.public import SOUND, UNSOUND

REQUIREMENTS = Path(kernels.__file__).with_name("requirements.txt")
PINS = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)


def gaps(kernel: Kernel, dtype: torch.dtype) -> dict[str, float]:
    """How far the kernel is from its reference in float64, on its friendly shape."""
    try:
        assert version(kernel.package) == PINS[kernel.package]
    except PackageNotFoundError:
        pytest.skip(f"{kernel.package} is not installed: see {REQUIREMENTS.name} beside the kernels")
    generator = torch.Generator().manual_seed(0)
    args = kernel.make(kernel.shapes[0], dtype, "plain", generator)
    kept: list[tuple[torch.Tensor, ...]] = []

    def cotangents(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        kept.append(random_cotangents(generator)(outputs))
        return kept[0]

    result = derive(kernel.call, kernel, args, cotangents)
    exact = derive(kernel.reference, kernel, upcast(args), upcast(kept[0]))
    assert {name: value.shape for name, value in result.items()} == {name: x.shape for name, x in exact.items()}
    return {name: distance(result[name], exact[name]) for name in exact}


def test_there_are_enough_and_each_package_has_a_pin() -> None:
    assert len(SOUND) >= 15
    assert {kernel.package for kernel in (*SOUND.values(), *UNSOUND.values())} <= {*PINS}


@pytest.mark.parametrize("kernel", [pytest.param(kernel, id=name) for name, kernel in SOUND.items()])
def test_a_sound_kernel_computes_its_map(kernel: Kernel) -> None:
    dtype = torch.float32 if torch.float32 in kernel.dtypes else torch.float16
    close = 1e-5 if dtype == torch.float32 else 5e-3
    assert max(gaps(kernel, dtype).values()) < close


@pytest.mark.parametrize("kernel", [pytest.param(kernel, id=name) for name, kernel in UNSOUND.items()])
def test_an_unsound_one_does_not(kernel: Kernel) -> None:
    assert max(gaps(kernel, torch.float32).values()) > 1e-3


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
