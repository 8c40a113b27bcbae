"""Records on disk: written as a whole whoever else writes, and read only if they are as they were written."""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gradspec._record import SCHEMA, RecordError, from_text, only_writer, put_aside, read, to_text, write
from gradspec._record._file import _partial, checksum

CONTENT = {"name": "loops", "numbers": {"ms": 25.5, "seen": [1, 2, 3]}, "rows": [{"a": 1}, {"b": "[ 1, 2 ]"}]}


def text(**changes: Any) -> str:
    return to_text("experiment", CONTENT | changes)


def resealed(**changes: Any) -> str:
    record = json.loads(text()) | changes
    return json.dumps(record | {"checksum": checksum(record)})


def test_what_is_written_is_what_is_read() -> None:
    found = from_text(text(), "experiment", where="x.json", again="again")
    assert {key: found[key] for key in CONTENT} == CONTENT
    assert (found["schema"], found["kind"]) == (SCHEMA, "experiment")


def test_a_list_of_numbers_and_each_row_stand_on_one_line() -> None:
    assert '"seen": [1, 2, 3]' in text()
    assert '  {"b":"[ 1, 2 ]"}' in to_text("experiment", CONTENT, rows="rows").splitlines()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        pytest.param(text()[:60], "is not JSON", id="cut off"),
        pytest.param("[" * 90_000, "is not JSON", id="deep"),
        pytest.param('{"a":' * 900 + "1" + "}" * 900, "schema version None", id="900 levels"),
        pytest.param("[]", "schema version None", id="a list"),
        pytest.param(text().replace(f'"schema": {SCHEMA}', '"schema": 99'), "schema version 99", id="schema"),
        pytest.param(text().replace(f'"schema": {SCHEMA}', '"schema": true'), "schema version True", id="a boolean"),
        pytest.param(text().replace('"experiment"', '"seeds"'), "kind 'seeds', expected 'experiment'", id="kind"),
        pytest.param(text().replace("25.5", "2.5"), "has been edited", id="a number"),
        pytest.param(text().replace('"checksum"', '"sum"'), "has been edited", id="no checksum"),
        pytest.param(text().replace("loops", "\\ud800"), "holds what no record holds", id="a lone surrogate"),
    ],
)
def test_what_is_not_as_it_was_written_is_refused_in_one_line(broken: str, message: str) -> None:
    with pytest.raises(RecordError, match=message) as caught:
        from_text(broken, "experiment", where="x.json", again="make it again")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("x.json")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    for name in ("x.json", "none.json"):
        with pytest.raises(RecordError, match="cannot be read"):
            read(tmp_path / name, "experiment", again="again")


def test_a_link_of_the_user_is_followed_and_one_at_a_guessed_name_is_not(tmp_path: Path) -> None:
    for name in ("mine", "real.json"):
        (tmp_path / name).write_text("precious")
    (tmp_path / "record.json").symlink_to("real.json")
    for name in ("record.json.partial", ".record.json.partial"):
        (tmp_path / name).symlink_to(tmp_path / "mine")
    write("new", tmp_path / "record.json")
    assert [(tmp_path / name).read_text() for name in ("mine", "real.json")] == ["precious", "new"]
    assert (tmp_path / "record.json").is_symlink()


def test_a_link_of_another_user_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "record.json").symlink_to("mine")
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    write("new", tmp_path / "record.json")
    assert (tmp_path / "mine").read_text() == "precious"
    assert not (tmp_path / "record.json").is_symlink()


@pytest.mark.parametrize("mode", [0o444, 0o600, 0o664])
def test_the_mode_of_a_file_stays(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "record.json"
    write("old", path)
    path.chmod(mode)
    write("new", path)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)


def test_what_dead_writers_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    dead = multiprocessing.get_context("fork").Process(target=int)
    dead.start()
    dead.join()
    for number in (dead.pid, os.getppid()):
        Path(f"{tmp_path}/{_partial(path)}{number}.x.partial").touch()
    (tmp_path / f".record.json.elsewhere.{dead.pid}.x.partial").touch()
    write("new", path)
    left = {file.name for file in tmp_path.glob(".*.partial")}
    assert left == {f"{_partial(path)}{os.getppid()}.x.partial", f".record.json.elsewhere.{dead.pid}.x.partial"}


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    write("record", pipe)

    assert os.read(reading, 100) == b"record"
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]
    assert pipe.is_fifo()
    with pytest.raises(RecordError, match="is a device or a pipe, and holds no record"):
        read(pipe, "verification", again="")
    os.close(reading)


def test_a_pipe_takes_what_is_longer_than_it_holds(tmp_path: Path) -> None:
    pipe, long = tmp_path / "pipe", "record" * 100_000
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with ThreadPoolExecutor(1) as pool:
        read_there = pool.submit(pipe.read_text)
        write(long, pipe)
    os.close(reading)

    assert read_there.result() == long


def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device or address"):
        write("record", tmp_path / "pipe")


def test_a_file_is_put_aside_beside_those_that_were(tmp_path: Path) -> None:
    names = []
    for text in ("one", "two"):
        (tmp_path / "r.json").write_text(text)
        names.append(put_aside(tmp_path / "r.json").name)
    assert names == ["r.json.unreadable", "r.json.unreadable.2"]
    assert (tmp_path / "r.json.unreadable").read_text() == "one"


def test_who_waits_for_another_writer_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    context = multiprocessing.get_context("fork")
    locked, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path / "r.json", locked, done))
    other.start()
    locked.wait()

    def told(text: str) -> None:
        said.append(text)
        done.set()

    with only_writer(tmp_path / "r.json", told):
        pass
    other.join()
    assert said == [f"waiting for another process that has locked {tmp_path} to write a record"]


def hold(path: Path, locked: Any, done: Any) -> None:
    with only_writer(path):
        locked.set()
        done.wait()


def test_a_write_that_fails_leaves_the_old_record_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write("old", path)
    with pytest.raises(UnicodeEncodeError):
        write("\ud800", path)
    with pytest.raises(OSError, match=r"."):
        write("new", path / "below")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_a_record_can_be_read_by_whom_any_new_file_can(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write("x", tmp_path / "record.json")
    assert (tmp_path / "record.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def _write_often(path: Path, mark: str) -> None:
    for _ in range(60):
        write(mark * 200_000, path)
    os._exit(0)


def _count_up(path: Path) -> None:
    for _ in range(50):
        with only_writer(path):
            write(str(int(path.read_text()) + 1), path)
    os._exit(0)


def in_two_processes(target: Any, *args: tuple[Any, ...]) -> list[Any]:
    fork = multiprocessing.get_context("fork")
    found = [fork.Process(target=target, args=given) for given in args]
    for process in found:
        process.start()
    return found


def test_two_writers_never_tear_a_record(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write("a" * 200_000, path)
    writers = in_two_processes(_write_often, (path, "a"), (path, "b"))
    while any(process.is_alive() for process in writers):
        assert len(set(path.read_text())) == 1
    assert [process.exitcode for process in writers] == [0, 0]
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_two_that_read_and_write_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "count"
    write("0", path)
    for process in in_two_processes(_count_up, (path,), (path,)):
        process.join()
    assert path.read_text() == "100"
    assert [file.name for file in tmp_path.iterdir()] == ["count"]


def test_a_resealed_record_of_another_form_is_json_all_the_same() -> None:
    assert from_text(resealed(numbers=5), "experiment", where="x", again="")["numbers"] == 5
