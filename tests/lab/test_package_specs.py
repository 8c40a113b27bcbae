"""The specs of functions of packages: their files, what is read from a check, and the committed summary."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gradspec_lab.campaigns.packages import _specs, _table
from gradspec_lab.campaigns.packages._specs_read import read_specs

RECORD = Path(__file__).parents[2] / "docs" / "records" / "package_specs.json"
TINY = '''"""A cube."""

import torch

from gradspec import FunctionSpec


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, y_bar):
        return {factor} * ctx.saved_tensors[0] ** 2 * y_bar


# Of one case.
{name} = FunctionSpec(
    Cube.apply, lambda x: x**3, cases=lambda make: [make(3)]
)
'''


def test_the_lines_of_a_spec_are_its_code_up_to_right():
    text = TINY.format(factor=3, name="RIGHT")
    assert _specs.lines(text + "\n\nWRONG = RIGHT.for_(None)\n") == 11
    with pytest.raises(ValueError, match="the spec assigns nothing to RIGHT"):
        _specs.lines(text.replace("RIGHT", "OTHER"))


@pytest.mark.slow
def test_the_first_finding_of_each_variant_is_read(tmp_path):
    file = tmp_path / "cube.py"
    wrong = TINY.format(factor=2, name="WRONG").replace("Cube", "Square")
    file.write_text(TINY.format(factor=3, name="RIGHT") + wrong, encoding="utf-8")
    found = _specs.checked(Path(sys.executable), file)

    assert found["RIGHT"] == {"name": "Cube", "fails": False, "laws": [], "says": "nothing is wrong"}
    assert found["WRONG"] == {
        "name": "Square",
        "fails": True,
        "laws": ["vjp"],
        "says": "every element is off by the factor 0.667; right with `return 3 * ctx.saved_tensors[0] ** 2 * y_bar` "
        "in place of `return 2 * ctx.saved_tensors[0] ** 2 * y_bar` (cube.py:38, in backward)",
    }


def test_every_spec_is_of_a_package_of_the_tables_and_has_both_variants():
    found = _specs.specs(_table.packages())
    assert list(found) == sorted(_specs.SPECS.rglob("*.py"))
    for package in found.values():
        assert _specs.lines(package.program) > 0
        assert "\nWRONG = " in package.program


def test_the_summary_is_of_the_committed_specs():
    rows = {row["spec"]: row for row in read_specs(RECORD)["specs"]}
    found = {path.relative_to(_specs.SPECS).as_posix(): one for path, one in _specs.specs(_table.packages()).items()}

    assert {name: row["key"] for name, row in rows.items()} == {name: one.key for name, one in found.items()}
    assert all(row["lines"] == _specs.lines(found[name].program) for name, row in rows.items())
    assert not [name for name, row in rows.items() if row["right"]["fails"]]
    assert not [name for name, row in rows.items() if not row["wrong"]["fails"]]
    assert all(row["wrong"]["laws"] for row in rows.values())


def test_a_row_is_kept_while_its_file_is_the_same(tmp_path, monkeypatch):
    packages = [one for one in _table.packages() if one.name == "diffsort"]
    checks = []

    def row(path, package, build):
        checks.append(package.version)
        return {"right": {"says": "right"}, "wrong": {"says": "wrong"}}

    monkeypatch.setattr(_specs, "_row", row)
    for some in (packages, packages, [replace(one, version="9") for one in packages]):
        _specs.measure(some, tmp_path, tmp_path / "specs.json", say=lambda line: None)
    assert checks == [packages[0].version, "9"]


def test_the_summary_names_no_place_of_a_machine():
    text = RECORD.read_text(encoding="utf-8")
    assert len(text) < 20_000
    assert not [word for word in ("/tmp", "/home", "/work", "/root", "site-packages") if word in text]
