"""Where a root is: the line of a definition in the file as it is now, without importing it."""

import pytest

from gradspec.render._place import Where, where_is

SOURCE = '''"""A module that cannot be imported."""

raise SystemExit

import torch


@decorated
class Scale(torch.autograd.Function):
    class Inner:
        @staticmethod
        def apply():
            pass


if torch:
    SPEC = Scale
'''


@pytest.fixture
def _source(tmp_path, monkeypatch):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    for name in ("ops.py", "pack/ops.py"):
        (tmp_path / name).write_text(SOURCE)
    (tmp_path / "broken.py").write_text("def (:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("_source")
@pytest.mark.parametrize(
    ("root", "place"),
    {
        "ops.py:Scale": ("ops.py", 9),
        "pack.ops:Scale": ("pack/ops.py", 9),
        "pack.ops:Scale.Inner.apply": ("pack/ops.py", 12),
        "ops.py:SPEC": ("ops.py", 17),
        "ops.py:torch": ("ops.py", 1),
        "ops.py": ("ops.py", 1),
    }.items(),
)
def test_that_a_definition_is_found(root, place):
    assert where_is(root) == Where(*place)


@pytest.mark.usefixtures("_source")
@pytest.mark.parametrize("root", ["nowhere:Scale", "nowhere.py:Scale", "broken.py:f", "pack.nothing:f", ""])
def test_that_what_is_not_there_has_no_place(root):
    assert where_is(root) is None


def test_that_a_file_elsewhere_is_not_of_this_repository(tmp_path):
    (tmp_path / "ops.py").write_text(SOURCE)
    place = where_is(f"{tmp_path}/ops.py:Scale")

    assert place == Where(f"{tmp_path}/ops.py", 9)
    assert not place.is_here
    assert Where("ops.py", 1).is_here
