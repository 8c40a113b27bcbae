"""Changes at random: which tests are asked, and what counts as noticed."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from gradspec_lab.campaigns import mutation_tests, mutations
from gradspec_lab.campaigns.mutation_tests import PACKAGE, Change, Suite, failing, noticed, statement, together
from gradspec_lab.campaigns.mutations import counted, drawn
from gradspec_lab.campaigns.mutations_together import noticed_together
from gradspec_lab.campaigns.random_edits import edits_in

pytestmark = pytest.mark.slow

TEXT = """def f(x):
    if (
        x
    ):
        return [
            1,
            2,
        ]
    return x
"""


TABLES = (
    "create table context (id, context); create table file (id, path); create table arc (file_id, context_id, tono);"
)


@pytest.fixture
def suite(tmp_path):
    with closing(sqlite3.connect(tmp_path / ".coverage")) as base:
        base.executescript(
            TABLES
            + """
            insert into context values (1, 'tests/record/test_key.py'), (2, 'tests/cli/test_check.py'), (3, '');
            insert into file values (1, '/a/src/gradspec/_record/_key.py'), (2, '/a/elsewhere.py'),
                (3, '/a/src/gradspec/law.py');
            insert into arc values (1, 1, 5), (1, 2, 5), (1, 2, 6), (1, 3, 7), (2, 1, 5), (1, 1, -1),
                (3, 2, 1), (3, 2, 2);
            """
        )
    return Suite.read(tmp_path / ".coverage")


def test_the_tests_that_run_a_line_are_asked_those_that_run_little_else_before_all(suite, monkeypatch):
    assert suite.asked("_record/_key.py", range(5, 6)) == ["tests/record/test_key.py", "tests/cli/test_check.py"]
    assert suite.asked("_record/_key.py", range(6, 8)) == ["tests/cli/test_check.py"]
    assert suite.asked("promise.py", range(1, 9)) == []
    monkeypatch.setattr(mutation_tests, "MOST", 1)
    assert suite.asked("_record/_key.py", range(5, 6)) == ["tests/record/test_key.py"]


def test_data_that_say_nothing_of_tests_are_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "none")) as base:
        base.executescript(TABLES)
    with pytest.raises(ValueError, match="does not say which tests run a line"):
        Suite.read(tmp_path / "none")


@pytest.mark.parametrize(("line", "lines"), [(1, range(1, 2)), (3, range(2, 5)), (7, range(5, 9)), (9, range(9, 10))])
def test_the_statement_of_a_line_without_its_body(line, lines):
    assert statement(TEXT, line) == lines


def test_a_seed_draws_one_edit_of_a_line_that_is_run():
    assert drawn(3) == drawn(3)
    kinds = {drawn(seed)[1].what for seed in range(4)}
    assert not kinds & set(mutations.NOT_RUN)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Return a folder with a package of one file, mine.py, which its tests import by itself."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they need none but this one, and each takes its time
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist")
    (tmp_path / PACKAGE).mkdir(parents=True)
    (tmp_path / PACKAGE / "mine.py").write_text("F = 1\nG = 2\nH = 3\n")
    (tmp_path / "conftest.py").write_text(f"import sys\n\nsys.path.insert(0, {str(tmp_path / PACKAGE)!r})\n")
    return tmp_path


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("assert F > 0", ""),
        ("assert F == 1", "test_one.py::test_one"),
        ("assert F == 1, 'stale: run nox -s records'", ""),
        ("assert F == 1, 'stale: run nox -s records'\n\ndef test_two():\n    assert F == 1", "test_one.py::test_two"),
        ("assert 0, 'without the edit too'", ""),
        ("pass\n\nclass TestMine:\n    def test_two(self):\n        assert F == 1", "test_one.py::TestMine::test_two"),
        ("pass\n\nassert F == 1", "test_one.py"),
    ],
)
def test_the_first_test_that_fails_of_the_edit_is_named_unless_it_only_calls_a_record_stale(copy, test, name):
    (copy / "test_one.py").write_text(f"from mine import F\n\ndef test_one():\n    {test}\n")

    assert noticed(copy, {"mine.py": "F = 2\n"}, ["test_one.py"]) == name
    assert (copy / PACKAGE / "mine.py").read_text() == "F = 1\nG = 2\nH = 3\n"


def numbers(copy):
    """Return the change of each number of the package."""
    text = (copy / PACKAGE / "mine.py").read_text()
    found = [Change("mine.py", edit, range(edit.line, edit.line + 1)) for edit in edits_in(text)]
    return dict(enumerate(change for change in found if change.edit.what == "a number"))


def test_changes_of_one_file_are_made_together(copy):
    assert together(copy, numbers(copy).values()) == {"mine.py": "F = (1 + 1)\nG = (2 + 1)\nH = (3 + 1)\n"}


def test_a_test_whose_name_holds_what_is_changed_fails_of_the_change(copy):
    (copy / "test_three.py").write_text(
        "import mine, pytest\n\n@pytest.mark.parametrize('f', [mine.F])\ndef test_f(f):\n    assert f == 1\n"
        "\ndef test_g():\n    assert mine.G == 2\n"
    )

    assert failing(copy, ["test_three.py::test_f[2]"]) == {}
    assert dict(noticed_together(copy, numbers(copy), Suite(["test_three.py"]), jobs=1)) == {
        0: "test_three.py::test_f[2]",
        1: "test_three.py::test_g",
    }


def test_of_many_changes_at_once_each_that_a_test_notices_is_found_behind_another_one_too(copy):
    (copy / "test_two.py").write_text(
        "import mine\n\ndef test_f_and_g():\n    assert mine.F == 1\n    assert mine.G == 2\n"
        "\ndef test_sum():\n    assert mine.G + mine.H != 7\n\ndef test_broken():\n    assert 0\n"
    )
    changes = numbers(copy)
    changes[3] = changes[0]  # the same place: it has to wait for the next round

    found = dict(noticed_together(copy, changes, Suite(["test_two.py"]), jobs=1))

    assert found == dict.fromkeys((0, 1, 3), "test_two.py::test_f_and_g"), "no change alone breaks the sum"


def test_what_is_noticed_is_counted_by_kind_and_what_is_not_is_listed():
    row = {
        "file": "law.py",
        "line": 3,
        "what": "a number",
        "old": "1",
        "new": "2",
        "tests": 4,
        "noticed": "",
        "seconds": 1.0,
    }

    found = counted([row, {**row, "noticed": "tests/a.py::test_a"}, {**row, "what": "a text", "noticed": "b"}])

    assert (found["changes"], found["noticed"]) == (3, 2)
    assert found["by_edit"] == {"a number": {"changes": 2, "noticed": 1}, "a text": {"changes": 1, "noticed": 1}}
    assert found["missed"] == [{key: row[key] for key in ("file", "line", "what", "old", "new", "tests")}]
