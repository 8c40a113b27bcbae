"""Changes at random: which tests are asked, and what counts as noticed."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import mutations
from mutations import Suite, counted, drawn, noticed, statement

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


def test_the_tests_that_run_a_line_are_asked_first_those_that_run_little_else_before_all(suite):
    first, others = suite.asked("_record/_key.py", range(5, 6))

    assert first == ["tests/record/test_key.py", "tests/cli/test_check.py"]
    assert "tests/pages/test_numbers.py" in others
    assert not {*others} & {*first}
    assert [name for name in others if "/drift/" in name] == []
    assert suite.asked("_record/_key.py", range(6, 8))[0] == ["tests/cli/test_check.py"]
    assert suite.asked("promise.py", range(1, 9))[0] == []


def test_no_test_is_asked_twice_and_none_that_runs_a_line_is_left_out(suite, monkeypatch):
    monkeypatch.setattr(mutations, "MOST", 1)

    first, others = suite.asked("_record/_key.py", range(5, 6))

    assert (first, others[0]) == (["tests/record/test_key.py"], "tests/cli/test_check.py")
    assert len(others) == len(set(others))


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


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("assert F > 0", ""),
        ("assert F == 1", "test_one.py::test_one"),
        ("assert F == 1, 'stale: run nox -s records'", ""),
        ("assert F == 1, 'stale: run nox -s records'\n\ndef test_two():\n    assert F == 1", "test_one.py::test_two"),
        ("assert 0, 'without the edit too'", ""),
    ],
)
def test_the_first_test_that_fails_of_the_edit_is_named_unless_it_only_calls_a_record_stale(tmp_path, test, name):
    (tmp_path / "src").mkdir()
    target = tmp_path / "src" / "mine.py"
    target.write_text("F = 1\n")
    (tmp_path / "test_one.py").write_text(f"from mine import F\n\ndef test_one():\n    {test}\n")

    assert noticed(tmp_path, target, "F = 2\n", ["test_one.py"]) == name
    assert target.read_text() == "F = 1\n"


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
