"""A function that writes to an argument, and says so by `mark_dirty`, is audited on copies, and judged as any other."""

import pytest
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS


class Relu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.clamp_(min=0)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return y_bar * (y > 0)


class Open(Relu):
    """Its mask is open where x is negative, too."""

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return y_bar * (y >= 0)


class AddTo(Function):
    @staticmethod
    def forward(ctx, x, *terms):
        ctx.mark_dirty(x)
        ctx.count = len(terms)
        for term in terms:
            x.add_(term, alpha=2)
        return x

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, *(2 * y_bar for _ in range(ctx.count))


class Saves(Function):
    """Keeps what it then writes to."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.mark_dirty(x)
        return x.pow_(2)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2 * x * y_bar


class WritesMore(Function):
    """Marks one of the two arguments that it writes to."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.mark_dirty(x)
        w.mul_(2)
        ctx.save_for_backward(w)
        return x.mul_(w)

    @staticmethod
    def backward(ctx, y_bar):
        (w,) = ctx.saved_tensors
        return y_bar * w, None


def broken(found):
    failed = (v for v in found.report.verdicts if v.status in (Status.BROKEN, Status.ERROR))
    return {v.law for v in failed if v.finding.rank != "waste"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "call"),
    [(Relu, "(randn(3, 4),)"), (AddTo, "(randn(3), randn(3), randn(3))"), (lambda x: x.mul_(2), "(randn(3),)")],
)
def test_a_right_function_is_right_and_its_spec_hands_it_a_copy(function, call):
    name = "twice" if function.__name__ == "<lambda>" else function.__name__
    found = audit(function, [call], name=name)

    assert broken(found) == set()
    assert any("torch lets nothing write to a leaf, so each call here gets a copy of it." in r for r in found.remarks)
    assert ".clone()" in found.proposal.partition("function=")[2].partition("\n")[0]


def test_a_wrong_mask_is_found_with_its_line():
    found = audit(Open, ["(randn(3, 4),)"], laws=["surrogate"])
    (verdict,) = found.report.verdicts

    assert verdict.status is Status.BROKEN
    assert verdict.finding.likely.startswith("right with `y > 0` in place of `y >= 0` (test_audit_written.py:")


def test_what_is_kept_before_it_is_written_to_is_found():
    found = audit(Saves, ["(randn(3),)"], laws=["surrogate"])
    (verdict,) = found.report.verdicts

    assert verdict.status is Status.BROKEN
    assert verdict.finding.likely == "it is the derivative at the output: the output is kept where `x` is meant"


def test_a_write_that_is_not_marked_stays_a_finding():
    laws = [law for law in LAWS if law.name in ("inputs_untouched", "declared_writes")]
    found = audit(WritesMore, ["(randn(3), randn(3))"], laws=laws)

    assert broken(found) == {"inputs_untouched", "declared_writes"}
    assert any("writes to `x`" in remark for remark in found.remarks)


@pytest.mark.slow
def test_a_proposal_that_hands_a_copy_on_can_be_imported(tmp_path):
    found = audit(Relu, ["(randn(3, 4),)"])

    assert found.remarks_of_proposal == ()
    assert "function=lambda x: Relu.apply(x.clone())," in found.proposal
