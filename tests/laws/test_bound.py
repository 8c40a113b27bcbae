"""How wrong a result of low precision may be: sound functions keep to the bound of their reference."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import Module

from gradspec import Case, FunctionSpec, Supports, audit, verify
from gradspec.law import Rank, Status
from gradspec.laws import LAWS
from gradspec.laws.tensor.support._bound import Bound, RoundedOperations, Units
from gradspec.spec import Accuracy

SINGLE = torch.finfo(torch.float32).eps / 2
SURROGATE = [law for law in LAWS if law.name == "surrogate"]
COARSE = Units(stored=0.25, summed=0.0)


def test_what_rounds_is_rounded_and_views_integers_and_copies_are_not():
    x = torch.full((4,), 1.5, dtype=torch.float64)
    with RoundedOperations(COARSE, seed=0):
        y, view, index, copy = x + x, x.view(2, 2), torch.arange(4) + 1, x.clone()
    assert bool(((y - 3).abs() <= 0.75).all())
    assert bool((y != 3).all())
    assert torch.equal(view, torch.full((2, 2), 1.5, dtype=torch.float64))
    assert index.tolist() == [1, 2, 3, 4]
    assert torch.equal(copy, x)


def test_what_a_mask_makes_infinite_stays_so():
    x = torch.tensor([1.0, -torch.inf, 2.0], dtype=torch.float64)
    for seed in range(8):
        with RoundedOperations(COARSE, seed=seed):
            y, weights = x + 1, x.softmax(0)
        assert y[1] == -torch.inf
        assert weights[1] == 0
        assert bool(weights.isfinite().all())


def test_a_write_through_a_view_reaches_what_is_seen_and_errs():
    x = torch.full((4,), 1.5, dtype=torch.float64)
    with RoundedOperations(COARSE, seed=0):
        x[1:3].mul_(2)
    assert x[[0, 3]].tolist() == [1.5, 1.5]
    assert bool(((x[1:3] - 3).abs() <= 0.75).all())
    assert 3 not in x.tolist()


@pytest.mark.parametrize(
    "of",
    [
        lambda x, y: x @ y.conj(),
        lambda x, y: (x @ y.mH.mT).sum(0),
        lambda x, y: torch.linalg.vector_norm(y.conj().imag),
    ],
)
def test_what_is_conjugated_errs_by_as_little(of):
    x, y = torch.randn(3, 4, dtype=torch.complex128), torch.randn(4, 2, dtype=torch.complex128)
    with RoundedOperations(Units(stored=1e-9, summed=1e-9), seed=0):
        rounded = of(x, y)
    assert not torch.equal(rounded, of(x, y))
    assert torch.allclose(rounded, of(x, y), rtol=0, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_a_transpose_for_an_adjoint_is_found(dtype):
    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, c_bar):
            a, b = ctx.saved_tensors
            return c_bar @ b.mT, a.mT @ c_bar

    call = tuple(torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((3, 4), (4, 2)))
    report = audit(Product, [call], reference=torch.matmul, laws=["vjp"], jobs=1).report

    assert "conjugated" in report.failures[0].finding.likely


def test_a_backward_pass_errs_too():
    x = torch.full((4,), 3.0, dtype=torch.float64, requires_grad=True)
    y = x.square()
    with RoundedOperations(COARSE, seed=0):
        (gradient,) = torch.autograd.grad(y.sum(), x)
    assert bool((gradient != 6).all())


def test_a_product_errs_by_the_length_of_its_sums():
    def scatter(length: int) -> float:
        a, b = (torch.ones(shape, dtype=torch.float64) for shape in ((1, length), (length, 1)))
        b[::2] = -1
        limits = Bound(lambda: (a @ b,), Units(stored=0.0, summed=SINGLE), seed=0).limits(0, torch.float32)
        assert limits is not None
        return float(limits.allowed)

    # n units for each of n terms, in random directions.
    assert scatter(1024) / scatter(64) == pytest.approx(16 * 4, rel=0.9)


def test_of_a_large_result_the_bound_is_as_wide(monkeypatch):
    x = torch.linspace(1, 2, 64, dtype=torch.float64)

    def allowed() -> Tensor:
        limits = Bound(lambda: (x.sin() * x,), Units.of(torch.bfloat16, torch.float32), seed=0).limits(0, torch.float32)
        assert limits is not None
        assert limits.gain(limits.right) == 1.0
        return limits.allowed

    small = allowed()
    monkeypatch.setattr("gradspec.laws.tensor.support._bound.LARGE", 8)
    assert torch.allclose(allowed(), small)


@pytest.mark.parametrize("add", [torch.sum, lambda x: x.sum(0), lambda x: x.mean(-1, keepdim=True) * len(x)])
def test_a_sum_errs_by_its_length(add):
    def scatter(length: int) -> float:
        x = torch.ones(length, dtype=torch.float64)
        x[::2] = -1
        limits = Bound(lambda: (add(x),), Units(stored=0.0, summed=SINGLE), seed=0).limits(0, torch.float32)
        assert limits is not None
        return float(limits.allowed.max())

    assert scatter(1024) / scatter(64) == pytest.approx(16 * 4, rel=0.9)


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


class Norm(Function):
    """The root mean square norm, in float32 inside."""

    gain = 1.0

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return norm(x.float(), weight.float()).to(x.dtype)

    @classmethod
    def backward(cls, ctx, y_bar):
        with torch.enable_grad():
            wide = [t.detach().float().requires_grad_() for t in ctx.saved_tensors]
            found = torch.autograd.grad(norm(*wide), wide, cls.gain * y_bar.float())
        return tuple(one.to(y_bar.dtype) for one in found)


class Gained(Norm):
    gain = 1.001


def running(x: Tensor) -> Tensor:
    return x.cumsum(0)


class Running(Function):
    """The sums of all numbers up to each; the gradient is carried in a dtype of its own."""

    carried: torch.dtype | None = torch.float32

    @staticmethod
    def forward(ctx, x):
        return x.float().cumsum(0).to(x.dtype)

    @classmethod
    def backward(cls, ctx, y_bar):
        carried = torch.zeros(y_bar.shape[1:], dtype=cls.carried or y_bar.dtype)
        found = torch.empty_like(y_bar)
        for t in reversed(range(len(y_bar))):
            carried = carried + y_bar[t]
            found[t] = carried
        return found


class CarriedInHalf(Running):
    carried = None


def spec_of(
    function: type[Function],
    primal: Callable[..., Tensor],
    *shapes: tuple[int, ...],
    dtype: torch.dtype,
    **declared: object,
) -> FunctionSpec:
    """Return a spec with one case in a low precision, of standard normal numbers."""

    def cases(make):
        generator = torch.Generator().manual_seed(len(shapes))
        yield Case(name="low", args=tuple(torch.randn(shape, generator=generator).to(dtype) for shape in shapes))

    names = tuple(primal.__code__.co_varnames[: len(shapes)])
    accuracy = Accuracy(**declared)  # type: ignore[arg-type]
    return FunctionSpec(
        name=function.__name__,
        function=function.apply,
        primal=primal,
        wrt=names,
        cases=cases,
        accuracy=accuracy,
        supports=Supports.eager(),
    )


def said(spec: FunctionSpec, law: str, seed: int = 0) -> tuple[Status, str]:
    (verdict,) = verify([spec], [one for one in LAWS if one.name == law], jobs=1, isolate=False, seed=seed).verdicts
    return verdict.status, verdict.finding.message


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_gradient_whose_sums_are_carried_in_bfloat16_is_wrong(seed):
    how = {"dtype": torch.bfloat16}
    assert said(spec_of(Running, running, (512, 4), **how), "vjp", seed)[0] is Status.HOLDS
    assert said(spec_of(CarriedInHalf, running, (512, 4), **how), "vjp", seed)[0] is Status.BROKEN


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_a_factor_below_the_unit_of_bfloat16_is_seen_where_results_are_kept_in_float32(seed):
    how = {"dtype": torch.bfloat16, "store": torch.float32}
    shapes = (33, 100), (100,)
    assert said(spec_of(Norm, norm, *shapes, **how), "vjp", seed)[0] is Status.HOLDS
    status, message = said(spec_of(Gained, norm, *shapes, **how), "vjp", seed)
    assert status is Status.BROKEN
    assert "off by the factor 1.00" in message


def test_what_is_declared_to_add_up_in_half_precision_may():
    kept, shape = {"dtype": torch.bfloat16, "store": torch.float32}, (128, 4)
    assert said(spec_of(CarriedInHalf, running, shape, **kept), "vjp")[0] is Status.BROKEN
    kept["accumulate"] = torch.bfloat16
    assert said(spec_of(CarriedInHalf, running, shape, **kept), "vjp") == (Status.HOLDS, "")


def test_an_audit_says_how_much_closer_float32_would_be():
    call = ["(randn(512, 4, dtype=bfloat16),)"]
    (verdict,) = audit(CarriedInHalf, call, laws=SURROGATE).report.verdicts
    assert verdict.status is Status.BROKEN
    assert "in float32 it would be" in verdict.finding.message
    (verdict,) = audit(Running, call, laws=SURROGATE).report.verdicts
    assert verdict.status is Status.HOLDS


class Root(Function):
    """The square root, by iteration to a tolerance."""

    @staticmethod
    def forward(ctx, x, tolerance):
        root = torch.ones_like(x)
        while bool(((root.square() - x).abs() > tolerance).any()):
            root = (root + x / root) / 2
        ctx.save_for_backward(root)
        return root + tolerance / 3

    @staticmethod
    def backward(ctx, y_bar):
        (root,) = ctx.saved_tensors
        return y_bar / (2 * root), None


def solver(tolerance: float, **declared: float) -> FunctionSpec:
    return FunctionSpec(
        name="root",
        function=Root.apply,
        primal=lambda x, tolerance: x.sqrt(),
        wrt=("x",),
        cases=lambda make: iter([Case(name="numbers", args=(make(5).abs() + 1, tolerance))]),
        accuracy=Accuracy(**declared),
        supports=Supports.eager(),
    )


def test_a_solver_that_stops_early_is_told_what_to_declare_and_no_run_fails_by_it():
    status, message = said(solver(1e-9), "primal")
    assert status is Status.BROKEN
    assert "accuracy=Accuracy(rtol=...)" in message
    (verdict,) = verify([solver(1e-9)], [one for one in LAWS if one.name == "primal"], jobs=1).verdicts
    assert verdict.finding.rank == "waste"


def test_a_tolerance_that_is_declared_is_kept_to():
    assert said(solver(1e-4, rtol=1e-3), "primal")[0] is Status.HOLDS
    assert said(solver(1e-4, rtol=1e-6), "primal")[0] is Status.BROKEN
    assert said(solver(1e-4, standard_error=1e-4), "primal")[0] is Status.HOLDS


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"rtol": -1.0}, "expected a number from 0 to 1"),
        ({"standard_error": float("nan")}, "expected a number from 0 on"),
    ],
)
def test_an_accuracy_that_is_no_number_from_zero_on_is_refused(declared, said):
    with pytest.raises(ValueError, match=said):
        Accuracy(**declared)


def test_a_reference_that_takes_no_float64_is_compared_as_it_is():
    def single(x: Tensor) -> Tensor:
        if x.dtype is torch.float64:
            raise TypeError("no float64")
        return x.cumsum(0)

    assert said(replace(spec_of(Running, single, (16, 4), dtype=torch.float32)), "vjp")[0] is Status.HOLDS


class InBlocks(Function):
    """A product of matrices, added up block by block in the dtype of the call."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        total = torch.zeros(len(x), w.shape[1], dtype=x.dtype)
        for k in range(0, len(w), 4):
            total = total + x[:, k : k + 4] @ w[k : k + 4]
        return total

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.T, x.T @ g


class Stream(Module):
    """A stream of residuals in bfloat16, as transformers keep it."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # whatever the files that were collected before have drawn
            torch.manual_seed(0)
            self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(24)).bfloat16()

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).tanh()
        return x


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (InBlocks, "(randn(8, 512, dtype=bfloat16), randn(512, 8, dtype=bfloat16))"),
        (Stream().requires_grad_(requires_grad=False), "(randn(8, 16, dtype=bfloat16, requires_grad=True),)"),
    ],
    ids=["in blocks", "stream"],
)
def test_a_value_that_is_added_up_in_half_precision_is_said_and_fails_nothing(function, call):
    (verdict,) = audit(function, [call], laws=SURROGATE).report.verdicts
    assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WASTE)
    assert "the output is off by" in verdict.finding.message
    assert "in float32 it would be" in verdict.finding.message


class Rounded(Function):
    """Root mean squares, computed in float32 and rounded to bfloat16 whatever is given."""

    factors = (1.0, 1.0)

    @staticmethod
    def forward(ctx, x, w):
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, w, r)
        return x * r * w

    @classmethod
    def backward(cls, ctx, g):
        x, w, r = (t.float() for t in ctx.saved_tensors)
        g = g.float()
        of_w, gy = (g * x * r).sum(0), g * w
        of_x = r * (gy - x * r * r * (gy * x).mean(-1, keepdim=True))
        return tuple((gradient * f).bfloat16() for gradient, f in zip((of_x, of_w), cls.factors, strict=True))


class RoundedAndDoubled(Rounded):
    factors = (2.0, 1.0)


class RoundedAndNegated(Rounded):
    factors = (1.0, -1.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("function", "status", "likely"),
    [
        (Rounded, Status.HOLDS, None),
        (RoundedAndDoubled, Status.BROKEN, "right for `w`"),
        (RoundedAndNegated, Status.BROKEN, "right for `x`"),
    ],
)
def test_gradients_that_are_rounded_whatever_is_given_are_judged_as_rounded(function, status, likely, seed):
    call = ["(randn(512, 8, dtype=bfloat16), randn(8, dtype=bfloat16))"]
    (verdict,) = audit(function, call, laws=SURROGATE, seed=seed).report.verdicts
    assert verdict.status is status
    assert likely is None or likely in verdict.finding.likely
