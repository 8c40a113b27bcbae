"""What disturbs a run, again and again: a fork on both sides, threads, foreign bytes, two writers, a long life.

`nox -s lab -- stress` does each 200 times; here it is done as often as `GRADSPEC_ROUNDS` says.
"""

import gc
import multiprocessing
import os
import stat
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradspec import Case, FunctionSpec, Supports, audit, verify
from gradspec._engine._child import available
from gradspec._registry._laws import select_laws
from gradspec.cli._kept import Kept
from gradspec.law import Status
from gradspec.report import read_record

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not available(), reason="no fork on this machine")]

ROUNDS = int(os.environ.get("GRADSPEC_ROUNDS", "2"))
LAWS = select_laws(["primal", "vjp", "aliasing", "cotangent_linearity"])


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.clone()


class Halves(Copy):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar / 2


def spec(name, function):
    def cases(make):
        yield Case(name="three", args=(make(3),))

    def primal(x):
        return x.clone()

    return FunctionSpec(
        name=name,
        function=function,
        primal=primal,
        surrogate=primal,
        wrt=("x",),
        cases=cases,
        supports=Supports.all(),
    )


def forks(x):
    os.fork()
    return Copy.apply(x)


#: What was open before the run: other tests of this process keep processes, which such bytes would make wait for ever.
OPEN = set()


def sockets():
    found = set()
    for descriptor in range(3, 4096):  # a worker of pytest that has run much has many open
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                found.add(descriptor)
    return found


def writes(x):
    for descriptor in sockets() - OPEN:
        with suppress(OSError):
            os.write(descriptor, b"kernel\n")
    return Copy.apply(x)


SOUND, WRONG = spec("sound", Copy.apply), spec("wrong", Halves.apply)


def statuses(report):
    return {(v.spec, v.law): v.status for v in report.verdicts}


@pytest.fixture(scope="module")
def expected():
    return statuses(verify([SOUND, WRONG], LAWS, isolate=False))


def of(name, expected, like="sound"):
    return {(name, law): status for (spec, law), status in expected.items() if spec == like}


def test_that_a_fork_that_comes_back_on_both_sides_misplaces_no_verdict(expected):
    for jobs in range(ROUNDS):
        report = verify([spec("forks", forks), SOUND, WRONG], LAWS, jobs=1 + jobs % 2)
        assert statuses(report) == of("forks", expected) | expected


def test_that_such_a_fork_misplaces_none_in_this_process(expected):
    for _ in range(ROUNDS):
        assert statuses(verify([spec("forks", forks), WRONG], LAWS, isolate=False)) == of("forks", expected) | of(
            "wrong", expected, "wrong"
        )


def test_that_the_other_side_of_a_fork_makes_no_later_call(tmp_path):
    def calls(folder, disturb):
        def noted(x):
            tempfile.mkstemp(dir=folder)
            disturb()
            return Copy.apply(x)

        folder.mkdir()
        audit(noted, [(torch.ones(3, dtype=torch.float64),)], laws=LAWS, jobs=1)
        return len(list(folder.iterdir()))

    assert calls(tmp_path / "forks", os.fork) == calls(tmp_path / "calm", lambda: None) > 10


def test_that_foreign_bytes_are_an_error_of_their_check_alone(expected, monkeypatch):
    monkeypatch.setitem(globals(), "OPEN", sockets())
    for jobs in range(ROUNDS):
        report = verify([SOUND, spec("writes", writes), WRONG], LAWS, jobs=1 + jobs % 2)
        found = statuses(report)
        assert {key: found[key] for key in expected} == expected
        assert {found["writes", law.name] for law in LAWS} <= {Status.ERROR, Status.NOT_MEASURED}
        (first,) = report.of(spec="writes", law="primal")
        assert first.finding.message == "on the pipe of the answers came bytes that are no answer"


@pytest.mark.parametrize("isolate", [None, False])
def test_that_runs_in_eight_threads_disturb_one_another_in_nothing(isolate, expected):
    def run(_):
        torch.manual_seed(0)  # takes the lock of CUDA, beside the runs of others
        return statuses(verify([SOUND, WRONG], LAWS, isolate=isolate))

    with ThreadPoolExecutor(8) as pool:
        for _ in range(ROUNDS):
            assert list(pool.map(run, range(8))) == [expected] * 8


def _write(path, report, laws):
    part = replace(report, verdicts=tuple(v for v in report.verdicts if v.law in laws))
    Kept(path, fresh=False).write(part)
    os._exit(0)


def test_that_two_writers_of_parts_lose_nothing(tmp_path):
    report = verify([SOUND, WRONG], LAWS)
    fork = multiprocessing.get_context("fork")
    for number in range(ROUNDS):
        path = tmp_path / f"{number}.json"
        parts = [("primal", "vjp"), ("aliasing", "cotangent_linearity")]
        writers = [fork.Process(target=_write, args=(path, report, laws)) for laws in parts]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert {v.law for v in read_record(path).verdicts} == {law.name for law in LAWS}
        assert [file.name for file in tmp_path.iterdir()] == [path.name]
        path.unlink()


def megabytes():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_that_audits_leave_nothing_behind_in_their_process():
    def some(count):
        for number in range(count):
            x = torch.full((3,), float(number), dtype=torch.float64)
            audit(Copy, [(x,)], laws=select_laws(["aliasing", "global_state"]))
        used = megabytes()  # it collects what earlier tests have left open
        return len(os.listdir("/proc/self/fd")), threading.active_count(), used  # noqa: PTH208 - it has links

    files, threads, before = some(5)
    later_files, later_threads, after = some(5 * ROUNDS)

    print(f"{5 * ROUNDS} audits: {before:.1f} MB before, {after:.1f} MB after, {later_files} descriptors")
    assert (later_files, later_threads) == (files, threads)
    assert after - before < 8
