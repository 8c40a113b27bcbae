"""Audits of functions of several kinds: a sound one is not called broken, and what is proposed of it is right."""

from dataclasses import replace

import pytest
import torch
from torch.autograd import Function

from gradspec import audit, verify
from gradspec._audit._case_syntax import read_case
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.profile import load_profile

NAMED = {law.name: law for law in LAWS}


class SignSTE(Function):
    """A sign whose gradient is that of a clip."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class CrossEntropy(Function):
    """A loss, and beside it the probabilities, which carry no gradient."""

    @staticmethod
    def forward(ctx, logits, target):
        p = logits.softmax(1)
        ctx.save_for_backward(p, target)
        ctx.mark_non_differentiable(p)
        return -p.gather(1, target[:, None]).log().sum(), p

    @staticmethod
    def backward(ctx, grad, _):
        p, target = ctx.saved_tensors
        return grad * (p - torch.zeros_like(p).scatter(1, target[:, None], 1)), None


class Dropout(Function):
    @staticmethod
    def forward(ctx, x):
        mask = (torch.rand_like(x) > 0.5).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask


class Exponential(Function):
    """Of a complex number; its backward forgets the conjugate unless told."""

    conjugate = False

    @classmethod
    def forward(cls, ctx, z):
        y = z.exp()
        ctx.save_for_backward(y)
        return y

    @classmethod
    def backward(cls, ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (y.conj() if cls.conjugate else y)


class ConjugatedExponential(Exponential):
    conjugate = True


class MutatesInBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return grad.mul_(2)


class OnlyDouble(Function):
    @staticmethod
    def forward(ctx, x):
        if x.dtype != torch.float64:
            raise TypeError(f"wants float64, got {x.dtype}")
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


def judged(function, text, *laws):
    return audit(function, [text], laws=[NAMED[name] for name in laws])


def test_an_output_without_a_gradient_is_no_wrong_backward():
    found = judged(CrossEntropy, "(randn(4, 3), tensor([0, 2, 1, 1]))", "surrogate")

    assert [v.status for v in found.report.verdicts] == [Status.HOLDS]


@pytest.mark.parametrize(("function", "status"), [(Exponential, Status.BROKEN), (ConjugatedExponential, Status.HOLDS)])
def test_a_complex_recipe_has_an_imaginary_part_that_shows_a_missing_conjugate(function, status):
    (verdict,) = judged(function, "(randn(2, 3, dtype=complex128),)", "surrogate").report.verdicts

    assert verdict.status is status


def test_noise_that_follows_the_order_of_memory_breaks_no_law():
    assert judged(Dropout, "(randn(4, 30),)", "surrogate", "layout").report.failures == ()


def test_a_form_that_agrees_on_small_numbers_alone_is_not_proposed():
    # Within [-1, 1] the gradient is that of x, and of a clipped x.
    proposal = judged(SignSTE, "(tensor([0.5, -0.25]),)", "surrogate").proposal

    assert "surrogate=lambda x: x.clamp(-1, 1),  # agrees with every case" in proposal


def test_the_proposal_with_an_index_names_what_it_uses_and_stays_in_range():
    proposal = judged(CrossEntropy, "(randn(4, 3), tensor([0, 2, 1, 1]))", "surrogate").proposal
    scope = {"CrossEntropy": CrossEntropy}
    exec(proposal, scope)
    report = verify([scope["CROSS_ENTROPY"]], [NAMED["ctx_clean"]])

    assert "yield read_case('(randn(4, 3), tensor([0, 2, 1, 1]))')" in proposal
    assert [v.status for v in report.verdicts] == [Status.HOLDS]


def test_what_is_broken_and_cannot_be_declared_is_named():
    proposal = judged(MutatesInBackward, "(randn(2),)", "cotangents_untouched").proposal

    assert "# Broken: cotangents_untouched (`gradspec explain`): mend it, or declare a Waiver" in proposal


def test_the_proposal_for_a_function_in_a_file_imports_it_from_beside(tmp_path, monkeypatch):
    (tmp_path / "ops.py").write_text("from engine.test_audit_kinds import OnlyDouble\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = audit(OnlyDouble, ["(randn(2),)"], path=f"{tmp_path}/ops.py:OnlyDouble", laws=[NAMED["surrogate"]])

    assert "\nfrom ops import OnlyDouble  # keep the spec beside ops.py\n" in found.proposal


def only(*laws):
    return replace(load_profile("quick"), laws=laws)


def test_a_law_that_is_asked_for_and_cannot_judge_is_left_out():
    noisy = audit(Dropout, ["(randn(4, 30),)"], profile=only("vmap", "ctx_clean"))

    assert [v.law for v in noisy.report.verdicts] == ["ctx_clean"]


@pytest.mark.parametrize(("law", "why"), [("vmap", "its calls differ"), ("vjp", "it compares with a reference")])
def test_an_audit_with_no_law_left_is_refused(law, why):
    function = Dropout if law == "vmap" else SignSTE

    with pytest.raises(ValueError, match=f"no law is left of {law}: {why}"):
        audit(function, [read_case("(randn(4, 30),)")], profile=only(law))


class Floored(Function):
    """A value, and a mask beside it: an output that is boolean has no cotangent."""

    factor = 1

    @staticmethod
    def forward(x, low):
        return torch.maximum(x, low), x < low

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @classmethod
    def backward(cls, ctx, grad, _):
        (mask,) = ctx.saved_tensors
        return cls.factor * grad.where(~mask, 0), grad.where(mask, 0)


class FlooredTwice(Floored):
    factor = 2


@pytest.mark.parametrize(("function", "surrogate"), [(Floored, Status.HOLDS), (FlooredTwice, Status.BROKEN)])
def test_a_boolean_output_is_beside_the_gradient(function, surrogate):
    laws = [NAMED[name] for name in ("surrogate", "cotangent_linearity", "cotangent_layout")]
    said = audit(function, ["(randn(4), randn(4))"], laws=laws).report.verdicts
    assert {v.law: v.status for v in said} == {
        "surrogate": surrogate,
        "cotangent_linearity": Status.HOLDS,
        "cotangent_layout": Status.HOLDS,
    }
