"""A function that draws inside: a short spec of it is green where it is sound, and red with its cause elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.drawing import (
    Anew,
    AnewAndUnscaled,
    ByItsOwn,
    ByNumpy,
    ByPython,
    Dropout,
    Given,
    GivenDoubled,
    Gumbel,
    GumbelWithoutTau,
    NoisyGradient,
    Rewound,
    Seeds,
    Shake,
    ShakeOfOne,
    TwiceAsNoisy,
    Unscaled,
    dropout,
    gumbel_choice,
    gumbel_gradient,
    gumbel_softmax,
    mask_like,
    masked,
    mixed,
    mixed_again,
    shaken,
    shaken_behind_forward,
    with_noise,
)
from gradspec import Case, FunctionSpec, OperatorSpec, Supports, stand_in, verify
from gradspec.findings import findings
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.laws.tensor._declared_draws import ANEW, OWN
from gradspec.spec import Noise

#: What a run costs in milliseconds: all laws but those that start processes or compile.
CHEAP = [law for law in LAWS if law.judges("function") and law.cost == "ms" and not law.alone]


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
NOISY = FunctionSpec(
    name="noisy_gradient",
    function=NoisyGradient.apply,
    primal=lambda x, width: x,
    gradient=with_noise,
    cases=call(0.3),
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
        replace(GUMBEL, name="gumbel_gradient", surrogate=None, gradient=gumbel_gradient),
        GIVEN,
        SHAKE,
        replace(SHAKE, name="shake_gradient", surrogate=None, gradient=shaken_behind_forward),
        NOISY,
        replace(NOISY, name="noisy_replayed", noise="replayed"),
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
        (
            replace(GUMBEL, function=GumbelWithoutTau.apply, surrogate=None, gradient=gumbel_gradient),
            "vjp",
            "gradient of `logits`",
            "0.7, which is `tau`",
        ),
        (GIVEN.for_(GivenDoubled.apply, name="doubled"), "vjp", "gradient of `x`", "factor 2"),
        (DROPOUT.for_(Anew.apply, name="anew"), "declared_draws", ANEW, "keep the mask"),
        (replace(SHAKE, surrogate=mixed), "declared_draws", ANEW, "keep the mask"),
        (
            SHAKE.for_(ShakeOfOne.apply, name="of_one"),
            "vjp",
            "gradient of `b`",
            "each row of dimension 0 is off by a factor of its own",
        ),
        (
            replace(SHAKE, name="own", surrogate=None, gradient=shaken),
            "declared_draws",
            ANEW,
            "or, if it is meant to draw numbers of its own, let `gradient` of the spec draw first what forward draws",
        ),
        (NOISY.for_(TwiceAsNoisy.apply, name="twice"), "vjp", "gradient of `x`", "ctx.width"),
        (
            DROPOUT.for_(Seeds.apply, name="seeds"),
            "declared_draws",
            "forward seeds torch's generator of cpu",
            "forward",
        ),
        (DROPOUT.for_(ByItsOwn.apply, name="its_own"), "declared_draws", OWN, "draw from torch's generator, or take"),
        (
            DROPOUT.for_(ByNumpy.apply, name="numpy"),
            "declared_draws",
            "forward draws from numpy's generator, which no checkpoint of torch rewinds",
            "draw from torch's generator: no spec can declare numpy's generator",
        ),
        (
            replace(DROPOUT, function=ByPython.apply, noise="replayed"),
            "declared_draws",
            "forward draws from python's random, which no checkpoint of torch rewinds",
            "draw from torch's generator: no spec can declare python's random",
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
    assert found["declared_draws"].likely.startswith("aten.rand_like draws (drawing.py:")
    assert found["declared_draws"].likely.endswith(", in mask_like)")


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


@torch.library.custom_op("gradspec_tests::dropout_inside", mutates_args=())
def operator(x: torch.Tensor, p: float) -> tuple[torch.Tensor, torch.Tensor]:
    mask = mask_like(x, p)
    return x * mask, mask


operator.register_fake(lambda x, p: (torch.empty_like(x), torch.empty_like(x)))
operator.register_autograd(
    lambda ctx, y_bar, _: (y_bar * ctx.saved_tensors[0], None),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output[1]),
)


def masked_and_mask(x, p):
    mask = mask_like(x, p)
    return x * mask, mask


def test_an_operator_that_draws_is_replayed_too():
    words = {"primal": masked_and_mask, "wrt": ("x",), "cases": call(0.4), "supports": ONCE}
    spec = OperatorSpec(name="dropout_operator", operator="gradspec_tests::dropout_inside", **words)
    laws = [law for law in LAWS if law.name in ("primal", "vjp", "declared_draws", "exported_operator", "vmap")]
    found = {v.law: v.status for v in verify([spec], laws, isolate=False).verdicts}

    assert found == {
        **dict.fromkeys(("primal", "vjp", "declared_draws"), Status.HOLDS),
        **dict.fromkeys(("exported_operator", "vmap"), Status.NOT_MEASURED),
    }
