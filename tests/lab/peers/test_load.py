from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import torch

from gradspec_lab.peers.load import alone, cut

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = """\
import a_module_that_is_not_installed

raise RuntimeError("nothing but the class runs")


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("line 13")
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "published.py"
    path.write_text(MODULE)
    return path


def test_class_is_cut_out_of_a_file_that_cannot_be_imported(module: Path) -> None:
    assert cut(module, "Twice").apply(torch.tensor(3.0)).item() == 6.0


def test_traceback_points_into_the_file(module: Path) -> None:
    y = cut(module, "Twice").apply(torch.tensor(3.0, requires_grad=True))
    with pytest.raises(ValueError, match="line 13") as error:
        y.backward()
    assert [(str(entry.path), entry.lineno + 1) for entry in error.traceback][-1] == (str(module), 13)


def test_unknown_class_lists_those_of_the_file(module: Path) -> None:
    with pytest.raises(LookupError, match=r"no class 'Thrice'; it has Twice"):
        cut(module, "Thrice")


def test_a_compiler_traces_into_the_class(module: Path) -> None:
    module.write_text(MODULE.replace('raise ValueError("line 13")', "return 2 * grad"))
    function = cut(module, "Twice").apply
    compiled = torch.compile(lambda x: function(x), fullgraph=True, backend="eager")
    x = torch.tensor(3.0, requires_grad=True)
    compiled(x).backward()
    assert x.grad == 2.0


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "published" / "nets"
    folder.mkdir(parents=True)
    for init in (tmp_path / "published" / "__init__.py", folder / "__init__.py"):
        init.write_text("raise RuntimeError('nothing around the module runs')\n")
    (folder / "block.py").write_text("WIDTH = 3\n")
    (folder / "net.py").write_text("from published.nets.block import WIDTH\n\nDOUBLE = 2 * WIDTH\n")
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "published"]:
        del sys.modules[name]


def test_module_is_imported_without_the_packages_around_it(package: Path) -> None:
    net = alone(package, "published.nets.net")
    assert net.DOUBLE == 6
    assert alone(package, "published.nets.net") is net


def test_missing_module_is_an_error(package: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"published\.nets\.other"):
        alone(package, "published.nets.other")
