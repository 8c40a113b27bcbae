"""What a kernel does within: it computes in float32 whatever it is given, and writes over its arguments."""

from types import SimpleNamespace

import pytest
import torch
from torch.autograd import Function

from gradspec import audit, read_case
from gradspec.explain._gradient import _shown
from gradspec.law import Rank, Reason, Status
from gradspec.laws.tensor._surrogate import _is_far
from gradspec.laws.tensor.support._differences import Slope

CALL = "(randn(4, 32), randn(4, 32))"


class Gated(Function):
    """gelu(a) * b, in float32 within; what torch makes of `gelu` rounds otherwise in another layout."""

    FACTOR = 1.0
    DTYPE = torch.float32

    @classmethod
    def of(cls, **names):
        return type("Gated", (cls,), names)

    @classmethod
    def forward(cls, ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.nn.functional.gelu(a.to(cls.DTYPE), approximate="tanh").to(a.dtype) * b

    @classmethod
    def backward(cls, ctx, g):
        a, b = ctx.saved_tensors
        with torch.enable_grad():
            low = a.detach().to(cls.DTYPE).requires_grad_()
            h = torch.nn.functional.gelu(low, approximate="tanh")
        (of_a,) = torch.autograd.grad(h, low, (g * b).to(cls.DTYPE))
        return of_a.to(a.dtype), cls.FACTOR * (g.to(cls.DTYPE) * h.detach()).to(b.dtype)


def found(function, *laws, call=CALL):
    verdicts = audit(function, [call], laws=laws).report.verdicts
    return {verdict.law: verdict.finding for verdict in verdicts}


@pytest.mark.slow
def test_what_float32_rounds_within_is_no_failure():
    said = found(Gated, "surrogate", "layout", "cotangent_layout", "cotangent_linearity")
    assert said["surrogate"].status is Status.HOLDS
    for law in ("layout", "cotangent_layout", "cotangent_linearity"):
        assert (said[law].rank, said[law].message.count("by no more than float32 rounds")) == (Rank.WASTE, 1), law
        assert "as if it were contiguous" not in said[law].likely


@pytest.mark.slow
def test_a_mistake_that_float32_shows_too_is_a_failure():
    said = found(Gated.of(FACTOR=1.01), "surrogate")["surrogate"]
    assert (said.status, said.rank) == (Status.BROKEN, Rank.WRONG)


@pytest.mark.parametrize(("off", "rank"), [(1e-6, Rank.WRONG), (1e-7, Rank.WASTE)])
def test_in_float64_such_a_difference_is_no_rounding(off, rank):
    class Reads(Gated.of(DTYPE=torch.float64)):
        @classmethod
        def backward(cls, ctx, g):
            of_a, of_b = super().backward(ctx, g)
            return of_a * (1 if g.is_contiguous() else 1 + off), of_b

    said = found(Reads, "cotangent_layout")["cotangent_layout"]
    assert (said.status, said.rank) == (Status.BROKEN, rank)


class Loss(Function):
    """A loss whose forward writes the gradient over its argument, as many fused losses do."""

    @staticmethod
    def forward(ctx, x, y):
        with torch.no_grad():
            loss = (x.logsumexp(-1) - x.gather(1, y[:, None])[:, 0]).mean()
            p = x.softmax(-1)
            p[torch.arange(len(y)), y] -= 1
            x.data.copy_(p / len(y))
        ctx.save_for_backward(x.detach())
        return loss

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x, None


def test_what_copies_of_the_arguments_mend_follows_from_the_write():
    laws = ("inputs_untouched", "declared_writes", "checkpoint", "second_order")
    said = found(Loss, *laws, call="(randn(8, 5), randint(0, 5, (8,)))")
    root = said["inputs_untouched"]
    assert root.message == "forward writes to `x`: its values have changed"
    assert root.details["place"].startswith("test_audit_within.py:")
    assert root.details["place"].endswith("in forward")
    assert [said[law].follows for law in laws[1:]] == ["inputs_untouched", "inputs_untouched", ""]
    assert said["second_order"].status is Status.BROKEN


def test_a_call_without_a_write_is_not_asked_again(monkeypatch):
    monkeypatch.setattr("gradspec._audit._of_writes._of_arguments", None)  # it cannot be called
    assert read_case(CALL).args[0].shape == (4, 32)
    said = found(Gated.of(DTYPE=torch.float64, FACTOR=2.0), "inputs_untouched", "surrogate")
    assert (said["inputs_untouched"].status, said["surrogate"].follows) == (Status.HOLDS, "")


class Product(Function):
    """Asks about the gradient of its first argument for both, as a fused head does."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.T

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g @ w, g.T @ x) if ctx.needs_input_grad[0] else (None, None)


class Nowhere(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.T @ x if all(ctx.needs_input_grad) and g.sum() != g.sum() else None


def test_the_argument_that_decides_about_another_one_is_named():
    said = found(Product, "needs_input_grad", call="(randn(3, 2), randn(4, 2))")["needs_input_grad"]
    assert "gradient of `w` (the only one required) is None" in said.message
    assert said.likely == "right where `x` requires a gradient too: whether that one does decides about `w`"
    none = found(Nowhere, "needs_input_grad", call="(randn(3, 2), randn(4, 2, requires_grad=True))")["needs_input_grad"]
    assert "requires a gradient too" not in none.likely


class Grouped(Function):
    """Attention whose heads share keys and values, in float32 within; the gradients of shared heads are summed."""

    SHIFT = 0

    @staticmethod
    def weights(q, k):
        return torch.softmax(q.float() @ k.float().mT, -1)

    @classmethod
    def forward(cls, ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        count = len(k)
        made = [(cls.weights(q[h], k[h % count]) @ v[h % count].float()).to(q.dtype) for h in range(len(q))]
        return torch.stack(made)

    @classmethod
    def backward(cls, ctx, g):
        q, k, v = ctx.saved_tensors
        q_bar, k_bar, v_bar = (torch.zeros(t.shape, dtype=torch.float32) for t in (q, k, v))
        for h in range(len(q)):
            one, there = h % len(k), (h + cls.SHIFT) % len(k)
            p, of_y = cls.weights(q[h], k[one]), g[h].float()
            of_p = of_y @ v[one].float().mT
            of_s = p * (of_p - (of_p * p).sum(-1, keepdim=True))
            q_bar[h] = of_s @ k[one].float()
            k_bar[there] += of_s.mT @ q[h].float()
            v_bar[there] += p.mT @ of_y
        return q_bar.to(q.dtype), k_bar.to(k.dtype), v_bar.to(v.dtype)


class Elsewhere(Grouped):
    SHIFT = 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_wrong_gradient_of_what_computes_in_float32_is_no_rounding_of_the_call(dtype):
    call = f"(randn(8, 7, 4, dtype={dtype}), randn(4, 7, 4, dtype={dtype}), randn(4, 7, 4, dtype={dtype}))"
    said = found(Elsewhere, "surrogate", call=call)["surrogate"]
    assert (said.status, said.rank) == (Status.BROKEN, Rank.WRONG)
    assert "gradient of `k` (random cotangent) differs in 112 of 112 elements" in said.message
    assert said.likely == "it is the right gradient shifted by 1 along dimension 0: an index is off"


def test_the_same_without_the_mistake_holds():
    call = "(randn(8, 7, 4, dtype=bfloat16), randn(4, 7, 4, dtype=bfloat16), randn(4, 7, 4, dtype=bfloat16))"
    assert found(Grouped, "surrogate", call=call)["surrogate"].status is Status.HOLDS


class Drawn:
    """A question of which some draws are right whatever is asked."""

    trial, got, expected = SimpleNamespace(seed=0), None, None

    def __init__(self, draws, *, is_right=False):
        self._draws, self._is_right = draws, is_right

    def redrawn(self, seed, *, moved):
        return Drawn([], is_right=self._draws.pop(0))

    def same(self, got, expected):
        return self._is_right


@pytest.mark.parametrize(
    ("draws", "is_shown"),
    [
        ((False, False), True),
        ((True, True, False, False), True),
        ((True, True, True, True, True, False), True),
        ((True,) * 6, False),
    ],
)
def test_numbers_on_which_nothing_is_wrong_say_nothing_of_a_cause(draws, is_shown):
    def test(one):
        return None if one.same(one.got, one.expected) else Reason(kind="factor", words="off by the factor 2")

    assert (_shown(test, Drawn(list(draws))) is not None) is is_shown


def test_differences_take_a_step_that_float32_within_leaves_digits_of():
    call = "(randn(4, 8, dtype=float32), randn(4, 8, dtype=float32))"
    said = found(Gated.of(FACTOR=1.02), "surrogate", call=call)["surrogate"]
    assert "gradient of `b` (random cotangent) differs in 31 of 32 elements" in said.message
    assert said.likely.startswith(
        "the gradient of `b` is off by the factor 1.02; right with `(g.to(cls.DTYPE) * h.detach())"
    )


@pytest.mark.parametrize(
    ("exact", "bar", "is_far"),
    [(6.8, 3e-4, True), (33.5, 3e-4, True), (33.99, 3e-4, False), (33.0, 0.034, True), (33.0, 0.035, False)],
)
def test_a_derivative_far_outside_of_a_wide_error_bar_is_another_one(exact, bar, is_far):
    assert _is_far(Slope(34.0, bar), exact, 34.0) is is_far
