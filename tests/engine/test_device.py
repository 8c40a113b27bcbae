"""Where an audit computes: the tensors of its calls say it, or the option `--device`."""

from dataclasses import replace

import pytest
import torch

from gradspec import FunctionSpec, audit, read_case
from gradspec._audit._audit import where
from gradspec._audit._device import on_device
from gradspec._audit._saved_call import _here, load_call, save_call
from gradspec._engine._child import Child
from gradspec.findings import Bar, is_asked
from gradspec.law import Finding, Rank, Scope, Status, TrialOf
from gradspec.laws.tensor._fake import FAKE
from gradspec.laws.tensor._parity import PARITY
from gradspec.profile import ProfileError, load_profile
from gradspec.spec import Case

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return (2 if grad.device.type == "cpu" else 3) * grad


def test_a_call_goes_to_a_device_with_its_strides_and_each_tensor_once():
    text = "((a := randn(3, 4).T), a, ones(3).expand(2, 3), randn(4, 6)[:, ::2], 0.5, k=[randn(2, requires_grad=True)])"
    case = read_case(text, device="meta")
    first, again, expanded, sliced, number = case.args
    assert first is again
    assert [t.stride() for t in (first, expanded, sliced)] == [(1, 4), (0, 1), (6, 2)]
    assert {t.device.type for t in (first, expanded, sliced, *case.kwargs["k"])} == {"meta"}
    assert (number, case.kwargs["k"][0].requires_grad) == (0.5, True)
    assert on_device(case, "meta").args[0] is first


def test_a_device_is_not_written_in_a_call():
    with pytest.raises(ValueError, match="--device"):
        read_case("(randn(2, device='cuda'),)")


@pytest.mark.parametrize(
    ("name", "device", "options"),
    [
        ("quick", "", ()),
        ("full", "", ("--profile", "full")),
        ("cuda", "", ("--profile", "cuda")),
        ("quick", "cuda", ("--device", "cuda")),
        ("full", "cuda:1", ("--profile", "full", "--device", "cuda:1")),
        ("cuda", "cpu", ("--profile", "cuda", "--device", "cpu")),
    ],
)
def test_the_command_that_repeats_a_check_names_the_device(name, device, options):
    assert load_profile(name, device=device).options(Scope.TRAINING) == options


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_device_that_is_not_there_is_refused_before_a_call():
    with pytest.raises(ProfileError, match="'quick' with the device 'cuda' needs a CUDA device, and torch finds none"):
        audit(Doubled, ["(randn(2),)"], profile=load_profile("quick", device="cuda"))


def test_a_device_of_another_number_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ProfileError, match="of this number, and torch finds 1, from cuda:0 on"):
        audit(Doubled, ["(randn(2),)"], profile=load_profile("quick", device="cuda:1"))


def test_a_saved_call_is_read_onto_the_device_that_is_chosen(tmp_path, monkeypatch):
    save_call(tmp_path / "call", (torch.ones(2),), {}, of="ours:Doubled")
    monkeypatch.setattr("gradspec._audit._saved_call._here", lambda device: torch.device("meta"))
    (there,), _, _ = load_call(tmp_path / "call")
    assert there.device.type == "meta"


@pytest.mark.parametrize(
    ("count", "saved", "here"),
    [(0, "cuda:0", "cpu"), (0, "cpu", "cpu"), (2, "cuda:1", "cuda:1"), (2, "cuda:5", "cuda:0"), (2, "cpu", "cpu")],
)
def test_a_tensor_goes_to_its_device_to_the_first_of_its_kind_or_to_the_cpu(monkeypatch, count, saved, here):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert _here(saved) == torch.device(here)


def spec(function):
    return FunctionSpec(
        name="kernel",
        function=function,
        primal=lambda x: 2 * x,
        surrogate=lambda x: 2 * x,
        wrt=("x",),
        cases=lambda make: iter([Case(name="two", args=(torch.ones(2, dtype=torch.float64),))]),
    )


def trial(function, device="cpu"):
    made = spec(function)
    return TrialOf(spec=made, case=next(made.cases(None)), profile=load_profile("quick", device=device), seed=0)


def test_no_kernel_is_given_the_memory_of_a_fake_tensor():
    def kernel(x):
        x.data_ptr()
        return 2 * x

    with pytest.raises(RuntimeError, match="data_ptr\\(\\) of a fake tensor, which has no memory"):
        FAKE.check(trial(kernel))
    assert torch.ones(2).data_ptr()


@pytest.mark.parametrize("is_audit", [True, False])
def test_a_kernel_for_one_device_is_no_finding_of_an_audit(monkeypatch, is_audit):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("gradspec.laws.tensor._parity.is_audited", lambda spec: is_audit)

    def kernel(x):
        raise ValueError("cannot be accessed from Triton (cpu tensor?)")

    if is_audit:
        found = PARITY.check(trial(kernel, device="cuda"))
        assert found.status is Status.NOT_APPLICABLE
        assert found.message == "on the device cpu it raises ValueError: cannot be accessed from Triton (cpu tensor?)"
    else:
        with pytest.raises(ValueError, match="cannot be accessed"):
            PARITY.check(trial(kernel, device="cuda"))


@pytest.mark.parametrize(("rank", "asked"), [(Rank.WRONG, True), (Rank.REFUSED, False)])
def test_an_audit_asks_what_a_cuda_graph_replays_and_not_that_it_can_be_captured(rank, asked):
    found = audit(Doubled, ["(randn(2),)"], laws=["cuda_graph"]).report
    finding = Finding(status=Status.BROKEN, message="what a capture says", rank=rank)
    assert is_asked(replace(found.verdicts[0], finding=finding), found, Bar()) is asked


@pytest.mark.parametrize("there", ["meta", "cpu"])
def test_a_call_that_runs_on_a_device_alone_is_told_the_option(monkeypatch, there):
    def kernel(x):
        if x.device.type == "cpu":
            raise ValueError("Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)")
        return 2 * x

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("gradspec._audit._refusals.on_device", lambda case, device: on_device(case, there))
    (verdict,) = audit(kernel, ["(randn(2),)"]).report.verdicts
    assert verdict.finding.message.startswith("a plain call raises ValueError: Pointer argument")
    assert ("--device cuda" in verdict.finding.likely) is (there == "meta")


def test_calls_on_the_cpu_are_audited_there():
    assert where(load_profile("quick"), Doubled, ["(randn(2),)", (torch.ones(2), [torch.ones(3)])]) == "cpu"


@needs_cuda
def test_calls_on_a_device_are_audited_there():
    found = audit(Doubled, [(torch.randn(3, dtype=torch.float64, device="cuda"),)], laws=["surrogate"])
    assert [verdict.status for verdict in found.report.verdicts] == [Status.BROKEN]
    assert "device=make.device" in found.proposal


@needs_cuda
def test_an_index_that_only_a_made_up_call_leaves_does_not_end_the_audit():
    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, table, index):
            ctx.save_for_backward(index)
            ctx.count = len(table)
            return table[index]

        @staticmethod
        def backward(ctx, grad):
            (index,) = ctx.saved_tensors
            return grad.new_zeros(ctx.count, *grad.shape[1:]).index_add_(0, index, grad), None

    call = (torch.randn(7, 3, device="cuda"), torch.tensor([0, 2, 2, 6], device="cuda"))
    statuses = {verdict.status for verdict in audit(Rows, [call]).report.verdicts}
    assert Status.ERROR not in statuses
    assert torch.ones(2, device="cuda").sum() == 2


def test_a_child_that_cannot_use_a_device_sees_none(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for is_bad, said in ((True, (False, 0)), (False, (True, 2))):
        monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda is_bad=is_bad: is_bad)
        with Child(lambda _: (torch.cuda.is_available(), torch.cuda.device_count()), time_limit=60.0) as child:
            assert child.ask(None) == said
    assert torch.cuda.device_count() == 2
