"""The key of files: what a spec reaches by imports counts byte by byte, what is installed by its version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradspec._record import Source, _bytes, _files, _packages, is_beneath
from gradspec._record._packages import dependencies, versions


def key(*roots: str) -> str:
    return Source.of(*roots).key


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def installed(folder: Path, name: str, *, version: str = "1.0", editable: bool = False) -> None:
    """Write what pip notes of a distribution of one package."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("" if editable else f"{name}/__init__.py,,\n")
    if editable:
        (info / "direct_url.json").write_text(json.dumps({"url": "file:///x", "dir_info": {"editable": True}}))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with a package `mine`, and a folder on `sys.path` beside it."""
    folder = tmp_path / "home"
    write(folder, {"mine/__init__": "", "mine/spec": "from . import helper\nimport other\n"})
    write(folder, {"mine/helper": "A = 1\n", "mine/apart": "B = 1\n", "loose": "import mine.helper\n"})
    write(tmp_path / "site", {"other/__init__": "from .inner import C\n", "other/inner": "C = 1\n"})
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(folder)
    caches = (_packages._owners, _packages._tops_of_dependencies, _packages._is_editable, _packages._folder_of)
    for cache in caches:
        cache.cache_clear()
    yield tmp_path
    for cache in caches:
        cache.cache_clear()


def edit(file: Path, text: str) -> None:
    file.write_text(text)
    later = time.time_ns() + 1_000_000_000  # of the same size and within one tick of the clock
    os.utime(file, ns=(later, later))


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("home/mine/spec.py", True),
        ("home/mine/helper.py", True),
        ("home/mine/__init__.py", True),
        ("site/other/inner.py", True),
        ("home/mine/apart.py", False),
        ("home/loose.py", False),
    ],
)
def test_a_file_counts_if_an_import_reaches_it(home: Path, file: str, counts: bool) -> None:
    before = key("mine.spec")
    assert before
    edit(home / file, (home / file).read_text() + "# another byte\n")
    assert (key("mine.spec") != before) is counts


def test_a_file_and_its_module_have_one_key_wherever_they_lie(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key("mine.spec")
    assert key("mine/spec.py:NAME") == key(str(home / "home" / "mine" / "spec.py")) == before
    (home / "home").rename(home / "moved")
    monkeypatch.chdir(home / "moved")
    monkeypatch.syspath_prepend(home / "moved")
    assert key("mine.spec") == before


@pytest.mark.parametrize("name", ["table.csv", "kernel.cu", "_C.so", "deep/weights.bin"])
def test_data_and_native_code_of_the_package_count(home: Path, name: str) -> None:
    before = key("mine.spec")
    (home / "home/mine" / name).parent.mkdir(exist_ok=True)
    (home / "home/mine" / name).write_bytes(b"1")
    first = key("mine.spec")
    (home / "home/mine" / name).write_bytes(b"22")
    assert len({before, first, key("mine.spec")}) == 3


def test_beside_a_file_outside_packages_only_native_code_counts(home: Path) -> None:
    before = key("loose.py")
    (home / "home" / "notes.txt").touch()
    assert key("loose.py") == before
    (home / "home" / "kernel.cu").touch()
    assert key("loose.py") != before


def test_a_record_in_a_package_does_not_count(home: Path) -> None:
    before = key("mine.spec")
    (home / "home/mine/record.json").write_text('{\n "schema": 2,\n "kind": "report"\n}\n')
    assert key("mine.spec") == before


def test_an_installed_distribution_counts_by_its_version(home: Path) -> None:
    installed(home / "site", "other")
    before = key("mine.spec")
    assert Source.of("mine.spec").reached().others == {"other 1.0"}
    edit(home / "site/other/inner.py", "C = 2\n")
    assert key("mine.spec") == before
    (home / "site/other-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 2.0\n")
    assert key("mine.spec") != before


def test_an_editable_install_and_the_distribution_of_the_spec_are_bytes(home: Path) -> None:
    installed(home / "site", "other", editable=True)
    before = key("mine.spec")
    edit(home / "site/other/inner.py", "C = 2\n")
    assert key("mine.spec") != before
    (home / "site/other-1.0.dist-info/direct_url.json").unlink()
    (home / "site/other-1.0.dist-info/RECORD").write_text("other/__init__.py,,\n")
    _packages._is_editable.cache_clear()
    _packages._owners.cache_clear()
    before = key("other")
    edit(home / "site/other/inner.py", "C = 3\n")
    assert key("other") != before


def test_what_gradspec_depends_on_is_a_version_wherever_it_lies(home: Path) -> None:
    assert {"torch", "numpy", "sympy", "mpmath", "typing-extensions"} <= set(dependencies())
    assert all(map(is_beneath, ("torch", "markdown_it", "typing_extensions", "json")))
    assert {line.partition(" ")[0] for line in versions()} >= {"python", "torch", "numpy", "click"}
    write(home / "site", {"torch/__init__": "import torch.module", "torch/module": ""})
    write(home / "home", {"mine/spec": "import torch.module\n"})
    assert {file.name for file in Source.of("mine.spec").reached().files} == {"__init__.py", "spec.py"}


def test_a_file_of_the_name_of_a_standard_module_is_read(home: Path) -> None:
    write(home / "home", {"statistics": "A = 1\n"})
    before = key("statistics.py")
    edit(home / "home/statistics.py", "A = 2\n")
    assert before not in ("", key("statistics.py"))


def test_a_package_of_many_files_counts_by_sizes_and_times(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bytes, "MANY", 1)
    monkeypatch.setattr(_files, "imported", lambda *_: pytest.fail("a package of many files is parsed"))
    before = key("other")
    edit(home / "site/other/inner.py", "C = 2\n")
    assert before not in ("", key("other"))


@pytest.mark.parametrize(
    "text", ["def (:\n", "import mine.spec\n", "from ....... import x\n", "\0", "import nothing.at.all\n"]
)
def test_a_file_that_cannot_be_followed_counts_by_its_bytes(home: Path, text: str) -> None:
    (home / "home/mine/spec.py").write_text(text)
    assert key("mine.spec")


@pytest.mark.parametrize("root", ["nowhere", "nowhere.py", "mine.nothing", ""])
def test_what_is_nowhere_has_no_key(home: Path, root: str) -> None:
    assert key(root) == ""
    assert not Source.of(root).agrees(Source.of(root))


def test_all_of_gradspec_counts_as_one(home: Path) -> None:
    source = Source.of("gradspec.functions")
    assert source.key == key("gradspec.laws.tensor._vjp") != ""
    assert "_vjp.py" in {file.name for file in source.reached().beneath}


def test_a_walk_imports_nothing(home: Path) -> None:
    write(home / "home", {"mine/spec": "import torch\nfrom . import helper\nopen('ran', 'w')\n"})
    code = (
        "import sys; from gradspec._record import Source; assert Source.of('mine.spec').key; "
        "sys.exit(bool({'torch', 'mine', 'other'} & set(sys.modules)))"
    )
    path = os.pathsep.join(map(str, (home / "home", home / "site")))
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 0
    assert not (home / "home" / "ran").exists()
