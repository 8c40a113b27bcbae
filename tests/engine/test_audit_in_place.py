"""A backward that writes to its cotangent is judged by what it returns, and the write is told by the laws of writes."""

from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS


class Triple(Function):
    """Right, and the cotangent of whoever handed it is gone."""

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.mul_(3)


class Double(Triple):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.mul_(2)


class Clips(Triple):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.mul_(3).clamp_(-0.5, 0.5)


class WritesToALeaf(Triple):
    """Backward writes to what forward has saved: torch refuses that of a leaf, where backward is differentiated."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return x.mul_(2) * y_bar


def found(function, *names):
    laws = [law for law in LAWS if law.name in names]
    return {v.law: v for v in audit(function, ["(randn(3),)"], laws=laws).report.verdicts}


def test_a_right_gradient_in_the_memory_of_the_cotangent_is_right():
    verdicts = found(Triple, "surrogate", "second_order", "cotangents_untouched")

    assert {law: v.status for law, v in verdicts.items()} == {
        "surrogate": Status.HOLDS,
        "second_order": Status.HOLDS,
        "cotangents_untouched": Status.BROKEN,
    }


def test_a_wrong_gradient_in_the_memory_of_the_cotangent_says_how_it_is_wrong():
    clipped = "backward clips the cotangent: right for small ones"
    for function, how in ((Double, "off by the factor 0.6667"), (Clips, clipped)):
        verdict = found(function, "surrogate")["surrogate"]

        assert verdict.status is Status.BROKEN
        assert verdict.finding.likely.startswith(how)


def test_what_backward_writes_to_a_leaf_is_not_said_of_forward():
    verdict = found(WritesToALeaf, "second_order")["second_order"]

    assert verdict.status is Status.NOT_PROMISED
    assert "a leaf Variable that requires grad" in verdict.finding.message
    assert "forward changes" not in verdict.finding.message
