"""Backward through a real connection: calls overlap, results do not depend on who is first, nothing is paid twice."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gradspec.text import Variable
from gradspec.text.lm import Budget, BudgetError, Cache, Client, ModelError, OpenAIModel, Retry, StatusError
from text.lm import chats
from text.lm.server import Server, digest, random_delay

SEED = Variable("shorter")
PATIENT = Retry(attempts=4, first_delay=0.01, max_delay=1.0)


def client_of(server, **settings):
    return Client(OpenAIModel("echo", base_url=server.url, timeout=30), **settings)


def run(server, k, system=False, **settings):
    shared = Variable("Be brief.", role="system prompt", requires_grad=True) if system else None
    parameters, loss = chats.branches(client_of(server, **settings), shared)
    loss.backward(SEED, max_concurrency=k)
    return chats.told(parameters)


def test_the_calls_of_sixteen_branches_are_in_flight_together():
    together = threading.Barrier(16, timeout=60)  # no branch is answered before all sixteen have asked

    def hold():
        if len(server.requests) > 1:  # the first asks about the loss
            together.wait()
        return 0.0

    with Server() as server:
        parameters, loss = backward_of(server)
        server.delay = hold
        loss.backward(SEED, max_concurrency=16)
        assert (len(server.requests), server.peak) == (17, 16)
        assert all(p.grad for p in parameters)


def test_no_more_calls_are_in_flight_than_allowed():
    with Server(delay=0.02) as server:
        _, loss = backward_of(server)
        loss.backward(SEED, max_concurrency=3)
        assert server.peak <= 3


def test_one_call_at_a_time_is_the_default():
    with Server(delay=0.001) as server:
        _, loss = backward_of(server)
        loss.backward(SEED)
        assert (len(server.requests), server.peak) == (17, 1)


def backward_of(server):
    """Return the program with its forward done and the server's counts at zero."""
    parameters, loss = chats.branches(client_of(server))
    server.requests.clear()
    server.peak = 0
    return parameters, loss


def test_a_shared_system_prompt_takes_a_call_for_each_branch_and_no_more():
    with Server(delay=0.05) as server:
        run(server, 16, system=True)
        assert len(server.requests) == 17 + 33


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_one_and_sixty_four_at_once_say_the_same_to_the_byte(seed):
    with Server(delay=random_delay(seed, 0.03)) as server:
        assert run(server, 64, system=True) == run(server, 1, system=True)
        assert server.peak > 1


def test_faults_on_the_way_change_nothing_and_pay_nothing_twice():
    with Server() as server:
        expected = run(server, 16)
    faults = [500, "reset", None, (429, {"Retry-After": "0.05"}), None, "truncated", 408, None, 503, 409] * 3
    with Server(faults=faults) as server:
        assert run(server, 4, retry=Retry(attempts=30, first_delay=0.001)) == expected
        said = [json.dumps(body) for body in server.paid]
        assert len(said) == len(set(said)) == 17 + 17
        assert server.faults == []


@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("fault", [400, "malformed"])
def test_a_fault_that_does_not_pass_leaves_every_grad_and_the_graph_as_they_were(fault, k, tmp_path):
    with Server() as server:
        parameters, loss = chats.branches(client_of(server, cache=Cache(tmp_path / "replies"), retry=PATIENT))
        parameters[3].grad = Variable("from before")
        server.faults = [None, None, None, None, fault]
        with pytest.raises(ModelError):
            loss.backward(SEED, max_concurrency=k)
        assert chats.told(parameters)[:3] + chats.told(parameters)[4:] == [None] * 15
        assert parameters[3].grad.data == "from before"
        loss.backward(SEED, max_concurrency=k)  # the graph is whole, and what was paid for is in the cache
        assert all(p.grad for p in parameters)
        paid = [json.dumps(body) for body in server.paid]
        assert len(paid) == len(set(paid)) == 17 + 17


def test_a_budget_that_ends_on_the_way_leaves_every_grad_as_it_was():
    with Server() as server:
        budget = Budget(calls=17 + 9)
        parameters, loss = chats.branches(client_of(server, budget=budget))
        with pytest.raises(BudgetError):
            loss.backward(SEED, max_concurrency=8)
        assert chats.told(parameters) == [None] * 16
        assert len(server.requests) == 17 + 9


def test_a_retry_that_gives_up_says_so_through_the_engine():
    with Server() as server:
        _, loss = chats.branches(client_of(server, retry=Retry(attempts=2, first_delay=0.0)))
        server.faults = [503] * 2
        with pytest.raises(StatusError, match="scripted 503") as caught:
            loss.backward(SEED, max_concurrency=16)
        assert "given up after 2 calls" in str(caught.value.__notes__)


#: Forward asks 17 times; backward once for the loss, and for each branch once for its prompt and once for the system.
DISTINCT = 17 + 1 + 16 + 16
SCRIPT = Path(chats.__file__)
TESTS = SCRIPT.parents[2]


def start(url, path, mode="read_write", **env):
    paths = os.pathsep.join([str(TESTS), *sys.path])
    command = [sys.executable, str(SCRIPT), url, str(path), mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths, **env})


@pytest.mark.slow
def test_killed_in_backward_and_resumed_pays_only_the_rest(tmp_path):
    path = tmp_path / "replies.sqlite3"
    enough = threading.Event()

    def reply(body):
        if len(server.paid) >= 17 + 8:
            enough.set()
        return digest(body)

    with Server(delay=0.05, reply=reply) as server:
        child = start(server.url, path)
        assert child.stdout.readline() == "forward is done\n"
        assert enough.wait(60)
        child.kill()
        assert child.communicate(timeout=60)[0] == ""  # it got no gradient out
        kept = len(Cache(path))
        before = len(server.requests)
        assert 17 + 4 <= kept <= before <= DISTINCT
        assert kept < DISTINCT
        output, _ = start(server.url, path).communicate(timeout=60)
        assert len(server.requests) == before + DISTINCT - kept  # only what was in flight when it died is paid again
    for seed in ("0", "7"):  # and now there is no server at all
        again, _ = start(server.url, path, "replay", PYTHONHASHSEED=seed).communicate(timeout=60)
        assert again == output
    gradients = json.loads(output.splitlines()[1])
    assert len(gradients) == 17
    assert all(gradients)
