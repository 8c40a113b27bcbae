"""Classes that one place makes with other values are judged each by itself, and so are calls with other options."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
import torch

from gradspec._watch._audits import audited
from gradspec._watch._row import Program, Row, together
from gradspec._watch._store import Store, row_of
from gradspec._watch._text import text
from gradspec._watch._variant import variant_of
from gradspec._watch._watcher import VARIANTS, Watcher
from gradspec.law import Rank, Status


def scaled_by(k, back):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * k

        @staticmethod
        def backward(ctx, grad):
            return grad * back

    return Scaled


class SharedSlope(torch.autograd.Function):
    """The slope of the last forward wins."""

    slope = 1.0

    @staticmethod
    def forward(ctx, x, slope):
        SharedSlope.slope = slope
        ctx.save_for_backward(x)
        return torch.atan(slope * x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * SharedSlope.slope / (1 + (SharedSlope.slope * x) ** 2), None


def seen_in(run):
    watcher = Watcher()
    watcher.start()
    try:
        run()
    finally:
        watcher.stop()
    return list(watcher.functions.values())


def use(function, *args):
    function.apply(torch.randn(4, 3, requires_grad=True), *args).sum().backward()


@pytest.mark.parametrize("wrong_first", [False, True])
def test_of_two_classes_of_a_factory_the_wrong_one_is_found(wrong_first):
    def run():
        made = [scaled_by(2.0, 2.0), scaled_by(3.0, 4.0)]
        for function in reversed(made) if wrong_first else made:
            use(function)

    rows = []
    for seen in seen_in(run):
        report = audited(seen)
        report = type(report)(**{**vars(report), "verdicts": report.of(law="surrogate")})
        rows.append(Row(key=seen.key, package=seen.package, where=seen.where, report=report))
    wrong, sound = together(rows)
    assert wrong.key.endswith("Scaled (back=4.0, k=3.0)")
    assert sound.key.endswith("Scaled (back=2.0, k=2.0)")
    assert {v.status for v in wrong.report.verdicts} == {Status.BROKEN}
    assert {v.status for v in sound.report.verdicts} == {Status.HOLDS}
    assert {v.spec for v in wrong.report.verdicts} == {wrong.key}


def test_classes_with_the_same_values_are_one():
    (seen,) = seen_in(lambda: [use(scaled_by(2.0, 2.0)) for _ in range(3)])
    assert seen.forwards == 3


def test_a_factory_that_makes_a_class_for_each_call_fills_no_report():
    found = seen_in(lambda: [use(scaled_by(float(k), 2.0)) for k in [*range(3 * VARIANTS), 3]])
    assert len(found) == VARIANTS
    assert sum(seen.forwards for seen in found) == 3 * VARIANTS + 1
    assert [seen.forwards for seen in found if "k=3.0" in seen.where] == [2]  # and not with what is told apart no more


def test_a_variant_is_told_by_plain_values():
    assert variant_of(scaled_by(2.0, torch.ones(3))) == ", k=2.0"
    assert variant_of(scaled_by("a:b", 1)) == ", back=1, k='a b'"


def test_calls_with_other_options_are_kept_and_state_on_the_class_is_found():
    def run():
        for slope in (25.0, 2.0, 3.0):
            use(SharedSlope, slope)

    (seen,) = seen_in(run)
    assert [call.args[1] for call in seen.calls] == [25.0, 2.0, 3.0]
    report = audited(seen)
    found = report.of(law="earlier_calls")
    assert (Status.BROKEN, Rank.WRONG) in {(v.status, v.finding.rank) for v in found}


def test_threads_may_call_a_function_at_once(tmp_path):
    store = Store(tmp_path)
    watcher = Watcher(store.note, at=0)
    watcher.start()
    together = threading.Barrier(6)

    def run(k):
        together.wait()
        for j in range(20):
            use(SharedSlope, float(k + j))

    try:
        threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        watcher.stop()
    assert not watcher.troubles
    (seen,) = watcher.functions.values()
    assert row_of(seen).forwards == 120


class Gated(torch.autograd.Function):
    """The last forward decides every backward."""

    kept = None

    @staticmethod
    def forward(ctx, x, gate):
        Gated.kept = x, torch.sigmoid(gate)
        return x * Gated.kept[1]

    @staticmethod
    def backward(ctx, grad):
        x, s = Gated.kept
        return grad * s, grad * x * s * (1 - s)


def test_state_is_not_told_as_what_float32_rounds():
    (seen,) = seen_in(lambda: use(Gated, torch.randn(4, 3, requires_grad=True)))
    report = audited(seen)

    assert Rank.WRONG in {v.finding.rank for v in report.of(law="interleaved")}
    assert Rank.WASTE not in {v.finding.rank for v in report.of(law="earlier_calls")}


class Cubed(torch.autograd.Function):
    """Saves what forward computes, and spends a product on a frozen argument."""

    @staticmethod
    def forward(ctx, x, w):
        square = x * x
        ctx.save_for_backward(square, x, w)
        return square * x * w

    @staticmethod
    def backward(ctx, grad):
        square, x, w = ctx.saved_tensors
        return 3 * grad * square * w, grad * square * x


def test_the_report_names_what_fails_beside_what_the_program_uses():
    watcher = Watcher()
    watcher.start()
    try:
        x, w = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
        Cubed.apply(x, w).sum().backward()
    finally:
        watcher.stop()
    (seen,) = watcher.functions.values()
    said = text(Program(rows=(replace(row_of(seen), report=audited(seen)),)))

    assert "nothing wrong (waste: needs_input_grad)" in said
    assert "there are findings of higher derivatives: `second_order` of " in said
    assert "(--scope higher asks)" in said
