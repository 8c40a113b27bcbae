"""What a function may return: a list of tensors, and complex numbers of real ones; each beside a diseased twin."""

from dataclasses import replace

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports, audit, verify
from gradspec.law import Status
from gradspec.laws import LAWS

NAMED = {law.name: law for law in LAWS}


def rounded(t):
    """Return a tensor of float32 with the digits of float16, any other as it is."""
    return t.half().to(t.dtype) if t.dtype == torch.float32 else t


class Halves(Function):
    """The two halves of the last dimension."""

    @staticmethod
    def forward(ctx, x):
        ctx.passes = 0
        return tuple(t.clone() for t in x.chunk(2, -1))

    @staticmethod
    def backward(ctx, *y_bar):
        return torch.cat(y_bar, -1)


class HalvesOnce(Halves):
    @staticmethod
    def backward(ctx, *y_bar):
        ctx.passes += 1
        return torch.cat(y_bar, -1) / ctx.passes


class HalvesRounded(Halves):
    @staticmethod
    def backward(ctx, *y_bar):
        return torch.cat([rounded(t) for t in y_bar], -1)


class HalvesOfMemory(Halves):
    @staticmethod
    def backward(ctx, *y_bar):
        return torch.cat([t.as_strided(t.shape, (t.shape[-1], 1)) for t in y_bar], -1)


class HalvesWithoutZeros(Halves):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return tuple(t.clone() for t in x.chunk(2, -1))

    @staticmethod
    def backward(ctx, a_bar, b_bar):
        return None if a_bar is None else torch.cat((a_bar, torch.zeros_like(a_bar) if b_bar is None else b_bar), -1)


class HalvesReadInOrder(Halves):
    @staticmethod
    def forward(ctx, x):
        return tuple(t.clone() for t in x.as_strided(x.shape, (x.shape[-1], 1)).chunk(2, -1))


class HalvesSwapped(Halves):
    @staticmethod
    def backward(ctx, a_bar, b_bar):
        return torch.cat((b_bar, a_bar), -1)


def listed(function):
    return lambda x: list(function.apply(x))


def spec_of(function):
    return FunctionSpec(
        name="halves",
        function=listed(function),
        primal=lambda x: list(x.chunk(2, -1)),
        surrogate=lambda x: list(x.chunk(2, -1)),
        wrt=("x",),
        supports=Supports.eager(),
        cases=lambda make: iter([Case(name="a matrix", args=(make(2, 4),))]),
    )


#: What an audit, which compares a function with itself, can find too.
LISTED = [
    ("retained_graph", HalvesOnce),
    ("cotangent_layout", HalvesOfMemory),
    ("layout", HalvesReadInOrder),
]
PROMISED = [
    *LISTED,
    ("precision", HalvesRounded),
    ("undefined_cotangent", HalvesWithoutZeros),
    ("vjp", HalvesSwapped),
    ("needs_input_grad", HalvesSwapped),
]


@pytest.mark.parametrize(("law", "twin"), LISTED)
def test_an_audit_judges_a_list_of_tensors(law, twin):
    found = {f: audit(listed(f), ["(randn(2, 4),)"], laws=[NAMED[law]]).report.verdicts for f in (Halves, twin)}

    assert [v.status for v in found[Halves]] == [Status.HOLDS]
    # A twin that reads memory it should not reads other numbers, or none that are there, and raises.
    assert [(v.status, "list" in v.finding.message) for v in found[twin]] == [(Status.BROKEN, False)]


@pytest.mark.parametrize(("law", "twin"), PROMISED)
def test_a_spec_may_promise_a_list_of_tensors(law, twin):
    found = {f: verify([spec_of(f)], [NAMED[law]]).verdicts for f in (Halves, twin)}

    assert [v.status for v in found[Halves]] == [Status.HOLDS]
    assert [(v.status, "raised" in v.finding.details) for v in found[twin]] == [(Status.BROKEN, False)]


def test_a_surrogate_with_another_number_of_outputs_is_a_fault_of_the_spec():
    (verdict,) = verify([replace(spec_of(Halves), surrogate=lambda x: x)], [NAMED["vjp"]]).verdicts

    assert (verdict.status, verdict.finding.message) == (
        Status.ERROR,
        "the primal of the spec has 2 outputs, the surrogate 1",
    )


class Polar(Function):
    """A complex number of its length and its angle."""

    @staticmethod
    def inner(t):
        """Return what forward computes with."""
        return t

    @classmethod
    def forward(cls, ctx, r, phi):
        ctx.save_for_backward(r, phi)
        return r * torch.polar(torch.ones_like(phi), cls.inner(phi))

    @classmethod
    def backward(cls, ctx, z_bar):
        r, phi = ctx.saved_tensors
        u = torch.polar(torch.ones_like(phi), phi)
        return (z_bar * u.conj()).real, (z_bar * (1j * r * u).conj()).real


class PolarRounded(Polar):
    @staticmethod
    def inner(t):
        return rounded(t)


class PolarPromoted(Polar):
    @staticmethod
    def inner(t):
        return t.double()

    @classmethod
    def forward(cls, ctx, r, phi):
        ctx.save_for_backward(r, phi)
        return torch.polar(r.double(), phi.double())


class PolarRoundedInBackward(Polar):
    @classmethod
    def backward(cls, ctx, z_bar):
        r_bar, phi_bar = Polar.backward.__func__(cls, ctx, z_bar)
        return rounded(r_bar), phi_bar


PRECISE = [
    (Polar, ""),
    (PolarRounded, "output 0 is less accurate than the reference"),
    (PolarPromoted, "output 0 has another dtype in low precision"),
    (PolarRoundedInBackward, "gradient of `r` is less accurate than the reference"),
]


@pytest.mark.parametrize(("function", "said"), PRECISE)
def test_a_complex_output_of_real_arguments_is_judged_in_low_precision(function, said):
    spec = FunctionSpec(
        name="polar",
        function=function.apply,
        primal=lambda r, phi: torch.polar(r, phi),
        surrogate=lambda r, phi: torch.polar(r, phi),
        wrt=("r", "phi"),
        supports=Supports.eager(),
        cases=lambda make: iter([Case(name="angles", args=(make(3, low=0.5, high=2.0), make(3)))]),
    )
    (verdict,) = verify([spec], [NAMED["precision"]]).verdicts

    assert verdict.status is (Status.BROKEN if said else Status.HOLDS)
    assert said in verdict.finding.message


def test_the_complex_function_of_torch_is_as_accurate_as_itself():
    (verdict,) = audit(torch.polar, ["(rand(3), randn(3))"], laws=[NAMED["precision"]]).report.verdicts

    assert verdict.status is Status.HOLDS


class SineAndCosine(Function):
    """Two outputs, of which a loss may use one."""

    sign = -1

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @classmethod
    def backward(cls, ctx, of_sine, of_cosine):
        (x,) = ctx.saved_tensors
        if of_sine is None:
            return None if of_cosine is None else cls.sign * of_cosine * x.sin()
        return of_sine * x.cos() - (0 if of_cosine is None else of_cosine * x.sin())


class OfTheCosineAlone(SineAndCosine):
    sign = 1


@pytest.mark.parametrize("reference", [None, lambda x: (x.sin(), x.cos())], ids=["alone", "beside a reference"])
def test_an_audit_tells_a_cotangent_that_is_none_from_zeros(reference):
    (sound,), (wrong,) = (
        audit(one, ["(randn(4),)"], laws=["undefined_cotangent"], reference=reference).report.verdicts
        for one in (SineAndCosine, OfTheCosineAlone)
    )
    assert sound.status is Status.HOLDS
    assert "gradient from output 1 alone of `x` differs" in wrong.finding.message
    assert wrong.finding.likely == "right where the cotangent of another output is zeros, and wrong where it is None"


def _hooked(x):
    y = 2 * x
    if y.requires_grad:
        y.register_hook(lambda grad: 0.5 * grad)
    return y


class _TimesNone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar


@pytest.mark.parametrize(
    ("function", "status"),
    [(_hooked, Status.NOT_APPLICABLE), (_TimesNone, Status.BROKEN), (lambda x: 2 * x, Status.HOLDS)],
)
def test_a_hook_of_a_tensor_need_not_bear_that_there_is_no_gradient(function, status):
    (verdict,) = audit(function, ["(randn(3),)"], laws=["undefined_cotangent"]).report.verdicts
    assert verdict.status is status
