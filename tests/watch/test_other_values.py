"""Calls that a program makes with other numbers, with defaults, and with tensors that no file holds as they are."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.autograd import Function

import gradspec
from gradspec.law import Status


class FromStart(Function):
    """x (x - start), with a gradient of the start that is right at zero alone."""

    @staticmethod
    def forward(ctx, x, start):
        ctx.save_for_backward(x, start)
        return x * (x - start)

    @staticmethod
    def backward(ctx, y_bar):
        x, _ = ctx.saved_tensors
        return y_bar * 2 * x, -y_bar * x


class Scaled(Function):
    """Returns a gradient for the argument that is given, and none for the default of the other one."""

    @staticmethod
    def forward(ctx, x, by=2.0):
        ctx.by = by
        ctx.save_for_backward(x)
        return x.sin() * by

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * x.cos() * ctx.by


class Step(Function):
    """Jumps at a threshold, which learns by a kernel about it; nothing is handed to x."""

    @staticmethod
    def forward(ctx, x, threshold):
        ctx.save_for_backward(x, threshold)
        return (x > threshold).to(x)

    @staticmethod
    def backward(ctx, y_bar):
        x, threshold = ctx.saved_tensors
        return None, (-2 * ((x - threshold).abs() < 0.25) * y_bar).sum(0)


class Conjugate(Function):
    @staticmethod
    def forward(ctx, x):
        return x.conj().resolve_conj()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.conj().resolve_conj()


def audited(program):
    with gradspec.watch() as seen:
        program()
    (row,) = seen.audit().rows
    return row


def leaf(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(0)).requires_grad_()


def test_a_call_with_other_numbers_is_audited_beside_the_first():
    def program():
        for start in (torch.zeros(3), torch.ones(3)):
            FromStart.apply(leaf(3), start.requires_grad_()).sum().backward()

    broken = [v for v in audited(program).report.of(law="surrogate") if v.status is Status.BROKEN]

    assert [verdict.case for verdict in broken] == ["(float32[3], float32[3]) in float64 #2"]


def test_what_is_left_to_its_default_is_left_there():
    assert statuses(audited(lambda: Scaled.apply(leaf(3)).sum().backward())) == {Status.HOLDS}


def test_a_step_that_hands_its_argument_nothing_is_a_question():
    row = audited(lambda: Step.apply(leaf(6, 4), torch.full((4,), 0.1, requires_grad=True)).sum().backward())

    assert statuses(row) == {Status.QUESTION}
    assert "`x` gets no gradient? Forward is flat" in row.report.of(law="surrogate")[0].finding.message


def test_complex_numbers_of_64_bits_end_no_watch():
    row = audited(lambda: Conjugate.apply(leaf(3, dtype=torch.complex128)).abs().sum().backward())

    assert statuses(row) == {Status.HOLDS}


def statuses(row):
    return {verdict.status for verdict in row.report.of(law="surrogate")}


GATHERED = """
import torch
import torch.distributed as dist


class AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
AllReduce.apply(torch.randn(3, requires_grad=True)).sum().backward()
"""


@pytest.mark.slow
def test_a_collective_is_not_waited_for_in_an_audit(tmp_path):
    (tmp_path / "ranks.py").write_text(GATHERED, encoding="utf-8")
    command = [sys.executable, "-m", "gradspec", "watch", "--", sys.executable, "ranks.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert "not audited: a call of the program, made again, raises ValueError: Default process group" in said.stderr
