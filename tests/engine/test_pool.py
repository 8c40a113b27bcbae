"""How work is given to workers: groups whole, no new one after the end, and no worker left open."""

import threading
from concurrent.futures import CancelledError

import pytest

from gradspec._engine._home import at_home
from gradspec._engine._parallel import _groups
from gradspec._engine._plan import plan
from gradspec._engine._pool import run_groups
from gradspec.functions import GRAD_FACTOR, GRAD_MULTIPLY
from gradspec.laws.tensor import COMPILE, PRIMAL, VJP


class Worker:
    """Writes down what happens to it."""

    def __init__(self):
        self.events = []

    def start(self):
        self.events.append("start")

    def close(self):
        self.events.append("close")


def test_that_a_group_is_run_whole_and_in_order_by_one_worker():
    workers, done = [Worker() for _ in range(3)], []
    groups = [[(group, item) for item in range(5)] for group in range(20)]

    left = run_groups(groups, workers, lambda worker, item: done.append((item, id(worker))))

    assert left == 0
    assert sorted(item for item, _ in done) == [item for group in groups for item in group]
    for number in range(20):
        of_it = [(item, worker) for (group, item), worker in done if group == number]
        assert [item for item, _ in of_it] == list(range(5))
        assert len({worker for _, worker in of_it}) == 1


def test_that_whoever_is_free_takes_the_next_hand():
    slow, quick = Worker(), Worker()
    took, go = {id(slow): 0, id(quick): 0}, threading.Event()

    def run(worker, item):
        took[id(worker)] += 1
        if worker is slow:
            go.wait(20)
        elif sum(took.values()) == 10:
            go.set()

    run_groups([[k] for k in range(10)], [slow, quick], run)

    assert took[id(slow)] <= 1
    assert took[id(quick)] >= 9


def test_that_every_worker_is_closed_after_an_error_and_the_others_take_nothing_more():
    workers, done = [Worker(), Worker()], []
    other = threading.Event()

    def run(worker, item):
        done.append(item)
        if worker is workers[0]:
            other.wait(20)
            raise ValueError("no more")
        other.set()
        while "close" not in worker.events:  # a child that is closed answers, and its thread goes on
            pass

    with pytest.raises(ValueError, match="no more"):
        run_groups([[1], [2], [3], [4]], workers, run)

    assert sorted(done) == [1, 2]
    assert all(worker.events[-1] == "close" for worker in workers)


def test_that_the_first_group_is_run_in_any_case_and_none_after_the_end():
    done = []

    assert run_groups([[1], [2], [3]], [Worker(), Worker()], lambda _, item: done.append(item), on=lambda: False) == 2
    assert done == [1]


def test_that_several_workers_have_forks_and_imports_done_in_the_thread_that_asked():
    done = []

    run_groups([[1], [2], [3]], [Worker(), Worker()], lambda *_: done.append(at_home(threading.get_ident)))

    assert done == [threading.get_ident()] * 3


def test_that_the_others_start_after_what_is_done_meanwhile():
    workers, started = [Worker(), Worker()], []

    def meanwhile():
        started.extend(list(worker.events) for worker in workers)

    run_groups([[1], [2]], workers, lambda *_: None, meanwhile=meanwhile)

    assert started == [["start"], []]


def test_that_after_an_error_nobody_waits_for_the_thread_that_asked():
    waiting, refused = threading.Event(), []

    def run(worker, item):
        if item == 1:
            waiting.wait(20)
            raise ValueError("no more")
        waiting.set()
        while True:
            try:
                at_home(lambda: None)
            except CancelledError as error:
                refused.append(error)
                raise

    with pytest.raises(ValueError, match="no more"):
        run_groups([[1], [2]], [Worker(), Worker()], run)

    assert len(refused) == 1


def test_that_checks_that_compile_are_dealt_out_one_by_one_behind_the_others():
    checks = plan([GRAD_FACTOR, GRAD_MULTIPLY], [PRIMAL, COMPILE, VJP])
    groups = _groups(checks, range(len(checks)))
    laws = [[checks[number].law.name for number in group] for group in groups]
    first = laws.index(["compile"])

    assert sorted(number for group in groups for number in group) == list(range(len(checks)))
    assert {*map(tuple, laws[:first])} == {("primal", "vjp")}
    assert {*map(tuple, laws[first:])} == {("compile",)}
