"""What an audit compares with is the function itself: an error there is never a finding about the function."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings
from gradspec.law import Rank, Status
from gradspec.laws import LAWS
from gradspec.laws.tensor.support._plain_forward import without_custom_gradient

NAMED = {law.name: law for law in LAWS}


class OldSquare(Function):
    """Sound, and of the old style: torch.func refuses it, and torch.compile traces into it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2 * x * y_bar


class OldRound(OldSquare):
    """Compiled inside torch.func, the gradient of the rounding itself is left: none."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


class SingleOnly(OldSquare):
    factor = 1

    @classmethod
    def forward(cls, ctx, x):
        if x.dtype != torch.float32:
            raise TypeError(f"wants float32, got {x.dtype}")
        return OldSquare.forward(ctx, x)

    @classmethod
    def backward(cls, ctx, y_bar):
        return cls.factor * OldSquare.backward(ctx, y_bar)


class WrongInSingle(SingleOnly):
    factor = 1.5


@torch.library.custom_op("gradspec_tests::square", mutates_args=())
def square(x: torch.Tensor) -> torch.Tensor:
    return x * x


square.register_fake(torch.empty_like)
square.register_autograd(
    lambda ctx, y_bar: 2 * ctx.saved_tensors[0] * y_bar,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def judged(function, text, *laws):
    return audit(function, [text], laws=[NAMED[name] for name in laws] if laws else None)


def statuses(found):
    return {verdict.law: verdict.status for verdict in found.report.verdicts}


@pytest.mark.parametrize(
    ("function", "case"),
    [
        (OldSquare, "(randn(2, 3),)"),
        pytest.param(SingleOnly, "(randn(2, 3, dtype=float32),)", marks=pytest.mark.slow),
        pytest.param(square, "(randn(2, 3),)", marks=pytest.mark.slow),
    ],
)
def test_an_audit_of_a_sound_function_ends_without_a_dangerous_finding(function, case):
    found = judged(function, case)

    assert [one.verdict.law for one in findings(found.report) if one.rank in (Rank.WRONG, Rank.REFUSED)] == []
    assert {verdict.law for verdict in found.report.failures} == set()


@pytest.mark.slow
def test_what_torch_compile_drops_is_said_of_the_compiled_function_though_eager_torch_func_refuses():
    found = judged(OldRound, "(randn(2, 3),)", "compile_jvp", "compile_grad", "compile_vmap")

    assert set(statuses(found).values()) == {Status.NOT_PROMISED}
    assert all("a sound function of this form does so too" in v.finding.message for v in found.report.verdicts)
    assert "in eager mode under `compile_jvp`, `compile_grad` and `compile_vmap`." in found.remarks[-1]


def test_the_compiled_tangent_of_a_function_without_forward_mode_is_held_to_its_backward():
    assert statuses(judged(OldSquare, "(randn(2, 3),)", "compile_jvp")) == {"compile_jvp": Status.HOLDS}


def straight_through(x):
    with torch.no_grad():
        step = x.round() - x
    return x + step


def test_what_forward_mode_gives_in_eager_mode_too_is_no_finding_of_compile():
    found = statuses(judged(straight_through, "(randn(2, 3),)", "adjoint", "compile_jvp"))

    assert found == {"adjoint": Status.BROKEN, "compile_jvp": Status.NOT_APPLICABLE}


@pytest.mark.parametrize(("function", "status"), [(SingleOnly, Status.HOLDS), (WrongInSingle, Status.BROKEN)])
def test_a_function_of_one_dtype_is_judged_in_it(function, status):
    found = judged(function, "(randn(2, 3),)", "surrogate", "autocast")

    assert statuses(found) == {"surrogate": status, "autocast": Status.HOLDS}
    assert found.remarks[0].startswith(
        "The calls were audited in float32: in float64, the default here, a plain call raises TypeError"
    )


def test_what_takes_float64_alone_is_not_blamed_for_a_copy_in_another_dtype():
    class DoubleOnly(OldSquare):
        @staticmethod
        def forward(ctx, x):
            if x.dtype != torch.float64:
                raise TypeError("wants float64")
            return OldSquare.forward(ctx, x)

    found = judged(DoubleOnly, "(randn(2, 3),)", "precision", "autocast")

    assert found.report.failures == ()
    assert "A plain call raises in float32, bfloat16, float16." in found.remarks
    (verdict,) = found.report.of(law="autocast")
    assert verdict.status is Status.NOT_MEASURED
    assert "the function in eager mode, raises TypeError: wants float64" in verdict.finding.message


def test_forward_without_its_gradient_is_what_autograd_makes_of_it():
    x = torch.tensor([0.5, -2.0], requires_grad=True)
    for function in (OldRound.apply, lambda x: OldRound.apply(x)):
        (gradient,) = torch.autograd.grad(without_custom_gradient(function, x).sum(), x)

        assert gradient.tolist() == [0.0, 0.0]
    assert "apply" not in vars(OldRound)


class Norm(OldSquare):
    """Its gradient is NaN at zero, under autocast too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * x / x.abs()


def test_what_is_nan_without_autocast_too_is_no_finding_of_autocast():
    case = (torch.tensor([0.0, 0.5, -2.0], dtype=torch.float64),)
    report = audit(Norm, [case], laws=[NAMED["autocast"], NAMED["surrogate"]]).report
    (autocast,), (surrogate,) = report.of(law="autocast"), report.of(law="surrogate")

    assert autocast.status is Status.HOLDS
    assert surrogate.finding.message == "gradient of `x` is NaN in 1 of 3 elements, and the value is finite"


class GuardedSqrt(Function):
    """The root of |x|, whose gradient at 0 is 0."""

    @staticmethod
    def forward(ctx, x):
        y = x.abs().sqrt()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        return y_bar * torch.where(y > 0, x.sign() / (2 * y), 0)


def guarded_sqrt(x):
    return torch.where(x == 0, 0, torch.where(x == 0, 1, x).abs().sqrt())


class Gathered(Function):
    """What each of several processes gathers."""

    @staticmethod
    def forward(ctx, *xs):
        ctx.sizes = [len(x) for x in xs]
        return tuple(torch.cat(xs) for _ in xs)

    @staticmethod
    def backward(ctx, *bars):
        return sum(bars).split(ctx.sizes)


@pytest.mark.parametrize(
    ("function", "reference", "case", "law"),
    [
        (GuardedSqrt, guarded_sqrt, "(tensor([1.0, 0.0, -2.0]),)", "compile_grad"),  # forward's own derivative is NaN
        (Gathered, lambda *xs: tuple(torch.cat(xs) for _ in xs), "(randn(2, 3), randn(2, 3))", "compile_vmap"),
    ],
)
def test_a_gradient_that_torch_drops_is_not_the_fault_of_a_function_whatever_stands_in_its_place(
    function, reference, case, law
):
    found = audit(function, [case], laws=["primal", "vjp", law], reference=reference)

    assert {v.status for v in found.report.of(law=law)} == {Status.NOT_PROMISED}
    assert f"in eager mode under `{law}`." in " ".join(found.remarks)
