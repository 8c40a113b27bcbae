"""A function that draws inside: a short spec of it is green where it is sound, and red with its cause elsewhere."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy
import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports, audit, stand_in, verify
from gradspec.findings import findings
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.laws.tensor._declared_draws import ANEW
from gradspec.spec import Noise

#: What a run costs in milliseconds: all laws but those that start processes or compile.
CHEAP = [law for law in LAWS if law.judges("function") and law.cost == "ms" and not law.alone]


def mask_like(x, p):
    return (torch.rand_like(x) >= p) / (1 - p)


def numpy_mask_like(x, p):
    return torch.from_numpy(numpy.random.rand(*x.shape) >= p) / (1 - p)


def python_mask_like(x, p):
    return x.new_tensor([[random.random() >= p for _ in row] for row in x]) / (1 - p)


def dropout(x, p):
    return x * mask_like(x, p)


def kept(ctx, x, p, mask):
    ctx.save_for_backward(mask)
    ctx.p = p
    return x * mask


class Dropout(Function):
    """Draw a mask in forward, and keep it."""

    @staticmethod
    def forward(ctx, x, p):
        return kept(ctx, x, p, mask_like(x, p))

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.saved_tensors[0], None


class Unscaled(Dropout):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * (ctx.saved_tensors[0] > 0), None


class Anew(Dropout):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * mask_like(y_bar, ctx.p), None


class AnewAndUnscaled(Dropout):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * (mask_like(y_bar, ctx.p) > 0), None


class ByNumpy(Dropout):
    @staticmethod
    def forward(ctx, x, p):
        return kept(ctx, x, p, numpy_mask_like(x, p))


class ByPython(Dropout):
    @staticmethod
    def forward(ctx, x, p):
        return kept(ctx, x, p, python_mask_like(x, p))


class Seeds(Dropout):
    @staticmethod
    def forward(ctx, x, p):
        torch.manual_seed(0)
        return Dropout.forward(ctx, x, p)


class Rewound(Dropout):
    """Draw the mask again in backward, from the state in which forward found the generator."""

    @staticmethod
    def forward(ctx, x, p):
        ctx.p, ctx.state = p, torch.get_rng_state()
        ctx.save_for_backward(x)
        return x * mask_like(x, p)

    @staticmethod
    def backward(ctx, y_bar):
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(ctx.state)
            return y_bar * mask_like(*ctx.saved_tensors, ctx.p), None


class Given(Function):
    """Draw from a generator of the caller's."""

    @staticmethod
    def forward(ctx, x, generator):
        mask = torch.rand(x.shape, dtype=x.dtype, generator=generator)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.saved_tensors[0], None


class GivenDoubled(Given):
    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar * ctx.saved_tensors[0], None


class Gumbel(Function):
    """Choose by a softmax with noise; the gradient is that of the softmax."""

    @staticmethod
    def forward(ctx, logits, tau):
        soft = gumbel_softmax(logits, tau)
        ctx.save_for_backward(soft)
        ctx.tau = tau
        return torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1)

    @staticmethod
    def backward(ctx, y_bar):
        (soft,) = ctx.saved_tensors
        return soft * (y_bar - (y_bar * soft).sum(-1, keepdim=True)) / ctx.tau, None


class GumbelWithoutTau(Gumbel):
    @staticmethod
    def backward(ctx, y_bar):
        return Gumbel.backward(ctx, y_bar)[0] * ctx.tau, None


def gumbel_softmax(logits, tau):
    return torch.softmax((logits - torch.log(-torch.log(torch.rand_like(logits)))) / tau, -1)


def gumbel_choice(logits, tau):
    soft = gumbel_softmax(logits, tau)
    return torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1)


class Shake(Function):
    """Mix by one number in forward and by another one in backward, as published."""

    @staticmethod
    def forward(ctx, a, b):
        return mixed(a, b)

    @staticmethod
    def backward(ctx, y_bar):
        beta = torch.rand(len(y_bar), 1, dtype=y_bar.dtype)
        return tuple(
            part * y_bar if asked else None for part, asked in zip((beta, 1 - beta), ctx.needs_input_grad, strict=True)
        )


def mixed(a, b):
    weight = torch.rand(len(a), 1, dtype=a.dtype)
    return weight * a + (1 - weight) * b


def mixed_again(a, b):
    mixed(a, b)  # backward goes on where forward has ended
    return mixed(a, b)


def masked(x, generator):
    return x * torch.rand(x.shape, dtype=x.dtype, generator=generator)


def call(*others, tensors=1):
    def cases(make):
        given = [torch.Generator().manual_seed(3) if one is torch.Generator else one for one in others]
        yield Case(name="rows", args=(*(make(4, 5) for _ in range(tensors)), *given))

    return cases


ONCE = Supports.eager(double_backward=None)
DROPOUT = FunctionSpec(
    name="dropout", function=Dropout.apply, primal=dropout, wrt=("x",), cases=call(0.4), supports=ONCE
)
GUMBEL = FunctionSpec(
    name="gumbel",
    function=Gumbel.apply,
    primal=gumbel_choice,
    surrogate=gumbel_softmax,
    wrt=("logits",),
    cases=call(0.7),
    supports=ONCE,
)
GIVEN = FunctionSpec(
    name="given", function=Given.apply, primal=masked, wrt=("x",), cases=call(torch.Generator), supports=ONCE
)
SHAKE = FunctionSpec(
    name="shake",
    function=Shake.apply,
    primal=mixed,
    surrogate=mixed_again,
    wrt=("a", "b"),
    cases=call(tensors=2),
    supports=ONCE,
)
#: As `gradspec init` writes it: nothing says yet what the function computes.
UNKNOWN = replace(DROPOUT, primal=stand_in(lambda x, p: Dropout.apply(x, p)), surrogate=None, noise="replayed")


def failing(spec, laws=CHEAP):
    """Return the causes of what fails in training, by law."""
    found = findings(verify([spec], laws, isolate=False))
    return [(one.verdict.law, one.verdict.finding) for one in found if one.verdict.law != "second_order"]


@pytest.mark.parametrize(
    "spec",
    [
        DROPOUT,
        DROPOUT.for_(Rewound.apply, name="dropout_rewound"),
        GUMBEL,
        GIVEN,
        SHAKE,
        UNKNOWN,
        replace(DROPOUT, name="dropout_declared", noise="replayed"),
    ],
    ids=lambda spec: spec.name,
)
def test_a_sound_function_that_draws_inside_breaks_nothing(spec):
    report = verify([spec], CHEAP, isolate=False)

    assert failing(spec) == []
    assert {v.status for v in report.of(law="declared_draws")} == {Status.HOLDS}


@pytest.mark.parametrize(
    ("spec", "law", "said", "likely"),
    [
        (DROPOUT.for_(Unscaled.apply, name="unscaled"), "vjp", "gradient of `x`", "factor 0.6"),
        (
            GUMBEL.for_(GumbelWithoutTau.apply, name="no_tau"),
            "vjp",
            "gradient of `logits`",
            "factor 0.7, which is `tau`",
        ),
        (GIVEN.for_(GivenDoubled.apply, name="doubled"), "vjp", "gradient of `x`", "factor 2"),
        (DROPOUT.for_(Anew.apply, name="anew"), "declared_draws", ANEW, "keep the mask"),
        (replace(SHAKE, surrogate=mixed), "declared_draws", ANEW, "keep the mask"),
        (
            DROPOUT.for_(Seeds.apply, name="seeds"),
            "declared_draws",
            "forward seeds torch's generator of cpu",
            "forward",
        ),
        (
            DROPOUT.for_(ByNumpy.apply, name="numpy"),
            "declared_draws",
            "forward draws from numpy's generator, which is not declared",
            "draw from torch's generator: nothing in torch rewinds numpy's generator",
        ),
        (
            replace(DROPOUT, function=ByPython.apply, noise="replayed"),
            "declared_draws",
            "forward draws from python's random, which is not declared",
            "draw from torch's generator: nothing in torch rewinds python's random",
        ),
        (
            replace(DROPOUT, primal=lambda x, p: x, surrogate=None),
            "declared_draws",
            "forward draws from torch's generator of cpu, which is not declared",
            'write `noise="replayed",` in the FunctionSpec',
        ),
        (
            replace(UNKNOWN, noise=None),
            "declared_draws",
            "forward draws from torch's generator of cpu, which is not declared",
            'write `noise="replayed",` in the FunctionSpec',
        ),
    ],
    ids=lambda value: value.name if isinstance(value, FunctionSpec) else "",
)
def test_a_broken_one_breaks_one_law_which_says_why(spec, law, said, likely):
    ((found, finding),) = failing(spec)

    assert (found, finding.status) == (law, Status.BROKEN)
    assert finding.message.startswith(said)
    assert likely in finding.likely


def test_a_backward_that_is_wrong_and_draws_anew_has_two_causes():
    spec = DROPOUT.for_(AnewAndUnscaled.apply, name="both")
    found = dict(failing(spec))

    assert set(found) == {"declared_draws", "vjp"}
    assert found["declared_draws"].message == "backward draws from torch's generator of cpu, which is not declared"


def test_what_a_spec_does_not_say_yet_draws_anew_too():
    spec = replace(UNKNOWN, function=Anew.apply, primal=stand_in(lambda x, p: Anew.apply(x, p)), surrogate=None)
    ((law, finding),) = failing(spec)

    assert (law, finding.message) == ("declared_draws", ANEW)


def test_another_implementation_draws_inside_too():
    assert UNKNOWN.for_(Anew.apply, name="theirs").noise == "replayed"


def test_noise_is_replayed_or_given():
    with pytest.raises(ValueError, match=r"noise is 'drawn', expected \"replayed\" of a function that draws inside"):
        replace(DROPOUT, noise="drawn")
    with pytest.raises(ValueError, match='expected "replayed"'):
        replace(DROPOUT, noise=Noise)


#: Training, without child processes.
FEW = [law for law in CHEAP if law.name in ("surrogate", "declared_draws", "retained_graph", "needs_input_grad")]


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (Dropout, "(randn(4, 5), 0.4)"),
        (Rewound, "(randn(4, 5), 0.4)"),
        (Given, "(randn(4, 5), Generator().manual_seed(3))"),
    ],
)
def test_an_audit_of_a_sound_function_that_draws_says_so_in_one_remark(function, call):
    found = audit(function, [call], laws=FEW, jobs=1)

    assert found.report.failures == ()
    (remark,) = found.remarks
    assert remark.startswith("Two calls with the same arguments differ: the function draws noise. The calls compared")


def test_an_audit_names_a_backward_that_draws_anew_first():
    found = audit(Anew, ["(randn(4, 5), 0.4)"], laws=FEW, jobs=1)
    first, *rest = findings(found.report)

    assert (first.verdict.law, first.verdict.finding.message) == ("declared_draws", ANEW)
    assert "surrogate" in first.follows
    assert not any(one.rank == "wrong" for one in rest)


class Jitter(Function):
    """Take the noise as an argument, and give it no gradient."""

    @staticmethod
    def forward(ctx, x, noise):
        ctx.save_for_backward(x)
        return x * x + noise

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * ctx.saved_tensors[0] * y_bar, None


def test_an_argument_that_is_named_as_noise_gets_no_gradient_on_purpose():
    call = ["(randn(3), randn(3))"]
    asked, told = (audit(Jitter, call, laws=FEW, jobs=1, **named) for named in ({}, {"noise": ("noise",)}))

    assert any("noise" in remark for remark in (*asked.remarks, *(v.finding.message for v in asked.report.verdicts)))
    assert told.remarks == ()
    assert {str(v.status) for v in told.report.verdicts} == {"holds"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"noise": ("p",)}, "noise names 'p', and no call of Jitter has a floating-point tensor of this name"),
        ({"noise": ("noise",), "wrt": ("noise",)}, "`noise` is named by wrt and by noise: leave one of them out"),
    ],
)
def test_noise_that_is_no_argument_or_is_trained_is_refused(names, said):
    with pytest.raises(ValueError, match=said):
        audit(Jitter, ["(randn(3), randn(3))"], laws=FEW, jobs=1, **names)
