"""The law of CUDA graphs on a machine that need not have a device: a recording stands in for the graph."""

import re
from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from gradspec.functions import FUNCTIONS
from gradspec.law import HOLDS, Status, TrialOf
from gradspec.laws.tensor._cuda_graph import CUDA_GRAPH, judge_replay
from gradspec.laws.tensor.support._captured import WARM_UP, captured, each_once
from gradspec.profile import load_profile
from gradspec.spec import Case
from gradspec.spec._maker import Maker
from gradspec_lab.specimens import DISEASED, HONEST, SCALE, breaking
from laws.lawbreaker import blinded, compared_with_itself
from laws.recorded import REFUSED, recorded

SOUND = {spec.name: spec for spec in (*HONEST, *FUNCTIONS) if spec.kind == "function"}
#: They check values on a CPU, where nothing waits, and leave the check to the device elsewhere.
READ_ON_A_CPU = (
    "checked_on_the_cpu",
    "instance_discrimination_loss",
    "linear_average_op",
    "linear_cross_entropy",
)
#: Its only case has no element.
EMPTY = ("tally_of_no_rows",)


def trials(spec):
    names = [case.name for case in spec.cases(Maker(0, "cpu"))]
    for name in names:
        (case,) = [case for case in spec.cases(Maker(0, "cpu")) if case.name == name]
        yield TrialOf(spec=spec, case=case, profile=load_profile("quick"), seed=0)


def found_in(spec, judge=judge_replay, capture=recorded):
    return [judge(trial, "cpu", capture) for trial in trials(spec)]


def caught(judge):
    """Return the specimens of the law that it breaks on, in the words that it should."""
    words = {name: DISEASED[name].caught_by["cuda_graph"] for name in breaking("cuda_graph")}
    broken = {n: [f.message for f in found_in(DISEASED[n].spec, judge) if f.status is Status.BROKEN] for n in words}
    return {name for name, said in broken.items() if any(re.search(words[name], message) for message in said)}


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_without_a_device_nothing_is_measured():
    (trial, *_) = trials(SCALE)
    found = CUDA_GRAPH.check(trial)

    assert (found.status, found.message) == (Status.NOT_MEASURED, "there is no CUDA device here")


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_function_is_the_same_in_a_replay(name):
    refuses = {"refuses": lambda *_: False} if name in READ_ON_A_CPU else {}
    found = found_in(SOUND[name], capture=partial(recorded, **refuses))

    assert HOLDS in found or name in EMPTY
    assert [f for f in found if f.status not in (Status.HOLDS, Status.NOT_APPLICABLE)] == []


@pytest.mark.parametrize("name", breaking("cuda_graph"))
def test_a_sick_function_is_caught(name):
    assert name in caught(judge_replay)


def test_each_thing_that_the_law_finds_is_held_by_a_specimen():
    changed = [*blinded(CUDA_GRAPH), *compared_with_itself(CUDA_GRAPH)]
    assert len(changed) == 6

    missed = {broken.name: caught(broken.law.check.__globals__["judge_replay"]) for broken in changed}
    assert [name for name, names in missed.items() if names == set(breaking("cuda_graph"))] == []


def test_a_read_is_said_with_what_the_capture_raised():
    (found, *_) = found_in(DISEASED["reads_a_value_in_each_call"].spec)

    assert REFUSED in found.message
    assert REFUSED in found.details["raised"]


def test_a_call_without_an_element_is_given_no_other_value():
    case = Case(name="empty", args=(torch.zeros(0, 3), 2.0))
    found = judge_replay(TrialOf(spec=SCALE, case=case, profile=load_profile("quick"), seed=0), "cpu", recorded)

    assert found.status is Status.NOT_APPLICABLE


def test_an_expanded_tensor_is_written_where_its_numbers_are():
    expanded = torch.zeros(1, 3).expand(2, 3)
    each_once(expanded).copy_(torch.tensor([[1.0, 2.0, 3.0]]))

    assert expanded.tolist() == [[1.0, 2.0, 3.0]] * 2


class Device:
    """What `captured` asks of torch.cuda, written down in order."""

    def __init__(self):
        self.said, self.stream_now = [], "current"
        self.CUDAGraph = lambda: SimpleNamespace(replay=lambda: self.said.append("replay"))

    def Stream(self):  # noqa: N802 - torch's name
        return SimpleNamespace(wait_stream=lambda other: self.said.append("the other stream waits"))

    def current_stream(self):
        return SimpleNamespace(wait_stream=lambda other: self.said.append("this stream waits"))

    def set_stream(self, stream):
        self.said.append("this stream again")

    def stream(self, stream):
        return nullcontext()

    def get_sync_debug_mode(self):
        return 0

    def set_sync_debug_mode(self, mode):
        self.said.append(f"waiting: {mode}")

    @contextmanager
    def graph(self, graph):
        self.said.append("capture")
        yield
        self.said.append("captured")


@pytest.fixture
def device(monkeypatch):
    device = Device()
    for name in ("CUDAGraph", "Stream", *(n for n in vars(Device) if not n.startswith("_"))):
        monkeypatch.setattr(torch.cuda, name, getattr(device, name))
    return device


def test_a_call_is_warmed_up_then_asked_whether_it_waits_then_captured(device):
    static, replay = captured(lambda: device.said.append("call") or "static")
    replay()

    assert static == "static"
    assert device.said == [
        "the other stream waits",
        *["call"] * WARM_UP,
        *("waiting: error", "call", "waiting: 0"),
        "this stream waits",
        *("capture", "call", "captured"),
        "this stream again",
        "replay",
    ]


def test_a_call_that_waits_is_never_captured(device):
    def waits():
        if device.said[-1] == "waiting: error":
            raise RuntimeError("called a synchronizing CUDA operation")

    with pytest.raises(RuntimeError, match="synchronizing"):
        captured(waits)
    assert device.said[1:] == ["waiting: error", "waiting: 0", "this stream again"]


def test_a_failed_capture_leaves_the_stream_as_it_was(device):
    def refused():
        if device.said[-1] == "capture":
            raise RuntimeError(REFUSED)

    with pytest.raises(RuntimeError, match=REFUSED):
        captured(refused)
    assert device.said[-1] == "this stream again"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_a_graph_of_cuda_replays():
    x = torch.ones(2, device="cuda")
    static, replay = captured(lambda: 2 * x)
    x.fill_(3)
    replay()

    assert static.tolist() == [6, 6]
