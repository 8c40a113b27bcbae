"""A hint is given for its own disease, and for none of the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Status, Supports, verify
from gradspec.laws import LAWS
from gradspec.spec import Argument

VJP = [law for law in LAWS if law.name in ("primal", "vjp")]
X = torch.tensor([[0.7, -1.3, 0.4], [1.9, 0.2, -0.8], [-0.6, 1.1, 2.3]], dtype=torch.float64)
W = torch.tensor([[0.3, 1.2, -0.9], [-1.4, 0.6, 0.8], [0.5, -0.7, 1.6]], dtype=torch.float64)
TIED = torch.tensor([[2.0, 2.0, 1.0], [0.5, -1.0, 0.0]], dtype=torch.float64)


def of(primal, backward, args, *, wrt=("x",), surrogate=None):
    """Return a spec of a Function whose backward gets the arguments, the outputs and the cotangents."""

    class Diseased(Function):
        @staticmethod
        def forward(ctx, *args):
            y = primal(*args)
            ctx.rest = [None if isinstance(a, torch.Tensor) else a for a in args]
            given = y if isinstance(y, tuple) else (y,)
            ctx.save_for_backward(*given, *(a for a in args if isinstance(a, torch.Tensor)))
            ctx.outputs = len(given)
            return y

        @staticmethod
        def backward(ctx, *v):
            y, tensors = ctx.saved_tensors[: ctx.outputs], list(ctx.saved_tensors[ctx.outputs :])
            back = backward(*(tensors.pop(0) if a is None else a for a in ctx.rest), *y, *v)
            back = back if isinstance(back, tuple) else (back,)
            return (*back, *[None] * (len(ctx.rest) - len(back)))

    return FunctionSpec(
        name="diseased",
        function=Diseased.apply,
        primal=primal,
        surrogate=surrogate or primal,
        wrt=wrt,
        cases=lambda make: iter([Case(name="one", args=args)]),
        supports=Supports.eager(),
    )


def _embed_backward(weight, index, y, v):
    weight_bar = torch.zeros_like(weight)
    weight_bar[index] += v
    return weight_bar


def _written_to_a_copy(x, y, v):
    x_bar = torch.zeros_like(x)
    x_bar.reshape(-1)[:] = (v * x.cos()).reshape(-1)
    return x_bar


def _largest_of_each(x, groups, n):
    return torch.stack([x[groups == k].max() if bool((groups == k).any()) else x.new_zeros(()) for k in range(n)])


def _with_that_of_empty_groups(x, groups, n, y, v):
    best = [int((x == y[k]).nonzero()[0]) if bool((groups == k).any()) else 0 for k in range(n)]
    return torch.zeros_like(x).index_add(0, torch.tensor(best), v)


def _to_nine_digits(t):
    return (t * 1e9).round() / 1e9


def _spread(x):
    return x.var(2, unbiased=False, keepdim=True).sqrt()


def _normed(x):
    return (x - x.mean(2, keepdim=True)) / _spread(x)


DISEASES = {
    "off by the factor 0.5 at index 2 of dimension 1 (of 3), right elsewhere": of(
        lambda x: x.sin(), lambda x, y, v: x.cos() * v * torch.tensor([1.0, 1.0, 0.5]), (X,)
    ),
    "backward ignores its cotangent": of(lambda x: x.sin(), lambda x, y, v: x.cos(), (X,)),
    "in each other's place": of(lambda a, b: a * b, lambda a, b, y, v: (v * a, v * b), (X, W), wrt=("a", "b")),
    "the derivative of forward": of(lambda x: x**3, lambda x, y, v: 3 * x**2 * v, (X,), surrogate=lambda x: x * 1),
    "the transpose of the right gradient": of(
        lambda x, w: x @ w.T, lambda x, w, y, v: (v @ w, x.T @ v), (X, W), wrt=("x", "w")
    ),
    "a negative number is miscounted": of(
        lambda x, dim: x.cumsum(dim),
        lambda x, dim, y, v: v.flip(dim % 3 % 2).cumsum(dim % 3 % 2).flip(dim % 3 % 2),
        (X, -1),
    ),
    "where no index in `index` repeats": of(
        lambda weight, index: weight[index], _embed_backward, (X, torch.tensor([1, 1])), wrt=("weight",)
    ),
    "wrong at this point alone (its elements tie)": of(
        lambda x: x.amax(1, keepdim=True), lambda x, y, v: v * (x == y), (TIED,)
    ),
    "0/0 or 0 * inf (an element of it is 0)": of(
        lambda x: x.norm(dim=1, keepdim=True), lambda x, y, v: v * x / y, (X * 0,)
    ),
    "a mask is missing": of(lambda x: x.clamp(-1, 1), lambda x, y, v: v, (X,)),
    "a mask shuts too much": of(lambda x: x.clamp(-2, 2), lambda x, y, v: v * (x.abs() < 1), (X,)),
    "wrong where `x` is negative": of(
        lambda x: x.abs() * x, lambda x, y, v: v * 2 * x.abs() * torch.where(x < 0, 0.5, 1.0), (X,)
    ),
    "right once saved tensor 1 (`k`) is transposed": of(
        lambda k, b: torch.linalg.solve(k, b),
        lambda k, b, y, v: (-torch.linalg.solve(k, v) @ y.T, torch.linalg.solve(k, v)),
        (W + 3 * torch.eye(3, dtype=torch.float64), X),
        wrt=("k", "b"),
    ),
    "right where `k` is symmetric": of(
        lambda k, b: k @ (k @ b),
        lambda k, b, y, v: (v @ (k @ b).T + k.T @ v @ b.T, k @ (k.T @ v)),
        (W, X),
        wrt=("k", "b"),
    ),
    "right where dimension 0 has one element": of(
        lambda x: x / x.norm(dim=1, keepdim=True),
        lambda x, y, v: (v - y * (v * y).sum()) / x.norm(dim=1, keepdim=True),
        (X,),
    ),
    "right where dimension 1 of `x` has one element": of(
        _normed,
        lambda x, y, v: (v - v.mean((1, 2), keepdim=True) - y * (v * y).mean((1, 2), keepdim=True)) / _spread(x),
        (torch.stack((X[:2], X[1:], W[:2], W[1:])),),
    ),
    "what is left is less than 1e-6 of the largest element": of(
        lambda x, w: x @ w.T,
        lambda x, w, y, v: (_to_nine_digits(v @ w.T), _to_nine_digits(v.T @ x)),
        (X, W),
        wrt=("x", "w"),
    ),
    "right where `x` is contiguous": of(lambda x: x.sin(), _written_to_a_copy, (X[:, :2].T,)),
    "right where all numbers of the cotangent are equal": of(
        lambda x: x.sin(), lambda x, y, v: x.cos() * v.mean(0, keepdim=True).mean(1, keepdim=True), (X[:1],)
    ),
    "right where the factors of backward are conjugated": of(
        lambda x: x * 1j, lambda x, y, v: v * 1j, (torch.complex(X, W),)
    ),
    "backward ignores the cotangent of output 1": of(
        lambda x: (x.sin(), x.cos()), lambda x, y, z, v, w: v * x.cos(), (X,)
    ),
    "takes the cotangents of outputs 0 and 1 for each other": of(
        lambda x, w: (x.sin(), x * w),
        lambda x, w, y, z, v, u: (u * x.cos() + v * w, v * x),
        (X, W),
        wrt=("x", "w"),
    ),
    "wrong for the cotangent of output 1": of(
        lambda x: (x.sin(), x.cos()), lambda x, y, z, v, w: v * x.cos() + w * (x.exp() - x.sin()), (X,)
    ),
    "the derivative at the output": of(lambda x: x.sin(), lambda x, y, v: v * y.cos(), (X,)),
    "of the first sample of the batch alone": of(
        lambda x, w: x @ w.T,
        lambda x, w, y, v: (v @ w, torch.outer(v[0], x[0])),
        (X, W),
        wrt=("x", "w"),
    ),
    "off by the factor 3": of(lambda x: x.sin(), lambda x, y, v: 3 * v * x.cos(), (X,)),
    "`x` is rounded to float32 on the way": of(lambda x: x.sin(), lambda x, y, v: v * x.float().cos(), (X,)),
    "the sign is flipped": of(lambda x: x.sin(), lambda x, y, v: -v * x.cos(), (X,)),
    "zero in place of a gradient": of(lambda x: x.sin(), lambda x, y, v: torch.zeros_like(v), (X,)),
    "sum what backward returns at place 1": of(
        lambda x, b: x + b[:, None], lambda x, b, y, v: (v, v), (X[:, :2], X[0]), wrt=("x", "b")
    ),
    "what comes of the output at indices 1, 3, 5 of dimension 1 (of 6) is missing": of(
        lambda x: x.repeat_interleave(2, 1), lambda x, y, v: v[:, ::2], (X,)
    ),
    "what comes of the output at indices 1 to 3 of dimension 1 (of 5) is off by the factor 2": of(
        lambda x: torch.fft.rfft(x),
        lambda x, y, v: torch.fft.irfft(v, n=8) * 8,
        (torch.cat((X, X[:, :2] + W[:, 1:], W), 1),),
    ),
    "off by a factor of its own: 2 at 1, 3 at 2": of(
        lambda x, w: x @ w.T,
        lambda x, w, y, v: ((v * torch.arange(1.0, 1 + v.shape[1])) @ w, v.T @ x),
        (torch.cat((X, W[:1])), torch.cat((W, X))[:3]),
        wrt=("x", "w"),
    ),
    "as many times the right one as its number occurs in `index`": of(
        lambda x, index: x.new_zeros(3, 3).index_reduce(0, index, x, "mean", include_self=False),
        lambda x, index, y, v: v[index],
        (torch.cat((X, W[:2])), torch.tensor([0, 0, 2, 2, 2])),
    ),
    "right once the cotangent is multiplied by `w`": of(
        lambda x, w: x / x.norm(dim=1, keepdim=True) * w,
        lambda x, w, y, v: (
            (v - (v * x).sum(1, True) * x / x.square().sum(1, True)) / x.norm(dim=1, keepdim=True),
            (v * x / x.norm(dim=1, keepdim=True)).sum(0),
        ),
        (X, W[0]),
        wrt=("x", "w"),
    ),
    "right where `groups` has every number below `n`": of(
        _largest_of_each, _with_that_of_empty_groups, (X[:, :2].reshape(-1), torch.tensor([0, 0, 2, 2, 2, 4]), 6)
    ),
    "what forward does to `x`, and must do the transposed of it": of(
        lambda x: x.cumsum(1), lambda x, y, v: v.cumsum(1), (X,)
    ),
    "the right numbers along dimension 1, in other places": of(
        lambda x: x.sin()[:, [1, 2, 0]], lambda x, y, v: (v * x.cos()[:, [1, 2, 0]])[:, [0, 2, 1]], (X,)
    ),
    "backward returns None for `b`": of(lambda x, b: x * b, lambda x, b, y, v: v * b, (X, W), wrt=("x", "b")),
}


def likely(specs):
    """Return what is said to be the cause in each of some specs, by their names."""
    named = [replace(spec, name=name) for name, spec in specs.items()]
    found = {v.spec: v.finding for v in verify(named, VJP, isolate=False).verdicts if v.law == "vjp"}
    assert {finding.status for finding in found.values()} == {Status.BROKEN}
    return {name: finding.likely for name, finding in found.items()}


@pytest.mark.parametrize("disease", DISEASES)
def test_a_disease_is_given_its_own_hint_and_none_of_the_others(disease):
    (said,) = likely({disease: DISEASES[disease]}).values()

    assert [hint for hint in DISEASES if hint in said] == [disease]


def test_where_no_test_shows_the_cause_none_is_named():
    odd = of(lambda x: x.sin(), lambda x, y, v: v * (x.cos() + 0.1 * x.exp()), (X,))

    assert likely({"odd": odd}) == {"odd": ""}


def test_a_rounding_beside_zero_is_no_mask():
    rounded = of(lambda x: x.clamp(-1, 1), lambda x, y, v: v * ((x.abs() < 1) + 1e-8 * x.exp()), (X,))

    assert likely({"rounded": rounded}) == {"rounded": ""}


MASK = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)[:, None]


@pytest.mark.parametrize(
    ("primal", "backward", "args", "kind", "evidence"),
    [
        (
            lambda x, t: (x / t).softmax(-1),
            lambda x, t, y, v: y * (v - (v * y).sum(-1, True)),
            (X, 0.7),
            "factor",
            "`t`",
        ),
        (lambda x: x * MASK, lambda x, y, v: 0.75 * v * MASK, (X,), "factor", 0.75),
        (lambda x: x.sin(), lambda x, y, v: v * x.cos() / 8, (X,), "factor", "1 / 8"),
        (lambda x: x * x.sigmoid(), lambda x, y, v: v * x.sigmoid(), (X,), None, None),
        (lambda x: x.softmax(-1), lambda x, y, v: y * v, (X,), "term", -1.0),
        (lambda x: x.softmax(-1), lambda x, y, v: y * (v - (v * y).sum(0)), (X,), "dimension", 0),
        (lambda x: x.exp(), lambda x, y, v: v * x, (X,), "wrong saved tensor", "the output"),
        (lambda x: x.sin(), lambda x, y, v: (v * x.cos()).roll(1, 0), (X,), "shifted", 1),
        (lambda x: x.sin(), lambda x, y, v: (v * x.cos()).flip(1), (X,), "reversed", 1),
        (lambda x: x.sin(), lambda x, y, v: (v * x.cos()).roll(1, 1), (X[:, :2].clone(),), "reversed", 1),
        (lambda x: x.cumsum(1), lambda x, y, v: v.flip(0).cumsum(0).flip(0), (X,), "other dimension", None),
        (lambda x: x.logsumexp(1), lambda x, y, v: v[None] * (x - y[:, None]).exp(), (X,), "dimension", 1),
        (lambda x: x.sin(), lambda x, y, v: v * x.cos() * (1 + (x == x.max())), (X,), None, None),
    ],
)
def test_a_cause_is_a_value_with_its_evidence(primal, backward, args, kind, evidence):
    (found,) = verify([of(primal, backward, args)], VJP[1:], isolate=False).of(law="vjp")
    why = found.finding.reason

    assert (why and why.kind) == kind
    if evidence is not None:
        assert evidence in [round(e, 9) if isinstance(e, float) else e for e in why.evidence.values()]
    assert found.finding.likely == (why.words if why else "")


def test_what_is_so_in_one_draw_only_is_not_said():
    fixed = {}

    def backward(x, y, v):
        right = v * x.cos()
        fixed.setdefault("first", v.clone())
        return 2 * right if torch.equal(v, fixed["first"]) else right * (1 + x**2)

    assert likely({"odd": of(lambda x: x.sin(), backward, (X,))}) == {"odd": ""}


def first(function, primal, law, *args):
    spec = FunctionSpec(
        name="odd",
        function=function,
        primal=primal,
        surrogate=primal,
        wrt=("x",),
        cases=lambda make: iter([Case(name="one", args=args)]),
        supports=Supports.eager(),
    )
    (found,) = (
        v.finding
        for v in verify([spec], [one for one in LAWS if one.name == law], isolate=False).verdicts
        if v.law == law
    )
    return found


def test_a_value_of_a_lower_precision_is_named():
    narrow = first(lambda x: x.float().sin().double(), lambda x: x.sin(), "primal", X)
    merely_wrong = first(lambda x: x.sin() * (1 + 1e-7), lambda x: x.sin(), "primal", X)

    assert "every number of it is a float32" in narrow.likely
    assert narrow.status is merely_wrong.status is Status.BROKEN
    assert "float32" not in merely_wrong.likely


def test_half_precision_that_overflows_is_told_from_a_lower_precision():
    large = torch.full((2, 3), 300.0, dtype=torch.float16)
    overflows = first(lambda x: (x * x).sum(1).sqrt(), lambda x: x.float().norm(dim=1).half(), "primal", large)
    merely_wrong = first(
        lambda x: x.float().norm(dim=1).half() + 1, lambda x: x.float().norm(dim=1).half(), "primal", large
    )

    assert "infinite in float16" in overflows.likely
    assert "infinite" not in merely_wrong.likely
    assert "every number of it" not in overflows.likely + merely_wrong.likely


def test_a_dimension_that_squeeze_took_is_named():
    squeezed = first(lambda x: x.sum(1).squeeze(), lambda x: x.sum(1), "primal", X[:1])
    summed = first(lambda x: x.sum(), lambda x: 2 * x.sum(1), "primal", X[:1])

    assert "name it, squeeze(dim) for squeeze()" in squeezed.likely
    assert squeezed.message == summed.message == "value has the wrong shape"
    assert "squeeze" not in summed.likely


class Intermediate(Function):
    """x sin(x), of which backward takes the sine as forward made it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.sine = x.sin()
        return x * ctx.sine

    @staticmethod
    def backward(ctx, v):
        (x,) = ctx.saved_tensors
        return v * (ctx.sine + x * x.cos())


class Detached(Intermediate):
    @staticmethod
    def backward(ctx, v):
        return Intermediate.backward(ctx, v).detach()


def test_an_intermediate_that_knows_no_graph_is_told_from_a_gradient_that_is_cut():
    kept, cut = (first(f.apply, lambda x: x * x.sin(), "second_order", X) for f in (Intermediate, Detached))

    assert "backward uses a result of forward" in kept.likely
    assert "is cut from the graph" in cut.likely


class RootOfNothing(Intermediate):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sin()

    @staticmethod
    def backward(ctx, v):
        (x,) = ctx.saved_tensors
        return v * (x.sin() + x * x.cos()) + (x - x).square().sum().sqrt()


def test_a_derivative_that_is_no_number_is_no_rounding_and_is_told_from_an_intermediate():
    rooted = first(RootOfNothing.apply, lambda x: x * x.sin(), "second_order", X)

    assert "is NaN" in rooted.message
    assert "an infinite slope here" in rooted.likely


class GivesUp(Function):
    """sin and cos, of which backward gives nothing unless both are asked for."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, v, w):
        (x,) = ctx.saved_tensors
        return None if v is None or w is None else v * x.cos() - w * x.sin()


def test_a_backward_that_gives_up_is_told_from_one_that_is_cut():
    given_up = first(GivesUp.apply, lambda x: (x.sin(), x.cos()), "undefined_cotangent", X)

    assert "backward returns None for `x`" in given_up.likely
    assert "where the cotangent of another output is None" in given_up.likely


def test_a_gradient_too_few_is_counted():
    class Short(Function):
        @staticmethod
        def forward(ctx, x, factor):
            return 2 * x

        @staticmethod
        def backward(ctx, v):
            return 2 * v

    assert first(lambda x: Short.apply(x, 2.0), lambda x: 2 * x, "vjp", X).likely == (
        "backward returns 1 of 2 gradients: one for each argument of forward, or None for it"
    )


def test_a_tensor_in_the_default_dtype_is_named():
    of_default = first(lambda x: torch.zeros(x.shape).add_(x.float()), lambda x: x * 1, "primal", X)
    of_float16 = first(lambda x: x.half(), lambda x: x * 1, "primal", X)

    assert "the default dtype" in of_default.likely
    assert of_float16.message == of_default.message == "value has the wrong dtype"
    assert "the default dtype" not in of_float16.likely


def test_a_seeding_is_told_from_a_draw():
    def seeds(x):
        torch.manual_seed(3)
        return x + 0 * torch.rand(3)

    seeding = first(seeds, lambda x: x * 1, "declared_draws", X)
    drawing = first(lambda x: x + 0 * torch.rand(3), lambda x: x * 1, "declared_draws", X)

    assert "forward seeds the generator" in seeding.likely
    assert drawing.status is Status.BROKEN
    assert 'write `noise="replayed",` in the FunctionSpec' in drawing.likely


def test_a_tensor_that_is_no_argument_is_named():
    hidden = torch.ones(3, dtype=torch.float64, requires_grad=True)
    found = first(lambda x: x * hidden, lambda x: x * 1, "needs_input_grad", X)

    assert found.got == "a graph that leads to float64[3]"
    assert "not registered as nn.Parameter" in found.likely


class Named(Function):
    @staticmethod
    def forward(ctx, data):
        return data.clone()

    @staticmethod
    def backward(ctx, v):
        return v


def test_a_function_that_names_its_argument_otherwise_is_called_by_its_own_name():
    own = first(Named.apply, lambda x: x.clone(), "keyword_call", X)
    unnamed = first(lambda *args: Named.apply(*args), lambda x: x.clone(), "keyword_call", X)

    assert own.status is Status.HOLDS
    assert "unexpected keyword argument 'x'" in unnamed.message


def test_documented_names_are_those_by_which_it_is_called():
    spec = FunctionSpec(
        name="named",
        function=Named.apply,
        primal=lambda x: x.clone(),
        surrogate=lambda x: x.clone(),
        wrt=("x",),
        arguments=(Argument(name="x", type="Tensor", text="any"),),
        cases=lambda make: iter([Case(name="one", args=(X,))]),
        supports=Supports.all(),
    )
    report = verify([spec], [law for law in LAWS if law.name == "keyword_call"], isolate=False)
    (found,) = (verdict.finding for verdict in report.verdicts if verdict.law == "keyword_call")

    assert "unexpected keyword argument 'x'" in found.message


class Lossy(Function):
    """x sin(x); one term of its backward is cut from the graph, and nothing is kept but the argument."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sin()

    @staticmethod
    def backward(ctx, v):
        (x,) = ctx.saved_tensors
        return v * (x.sin() + x.data * x.cos())


def test_a_missing_term_is_told_from_an_intermediate():
    lossy = first(Lossy.apply, lambda x: x * x.sin(), "second_order", X)

    assert "where they cut the graph" in lossy.likely
    assert "where they cut the graph" not in first(Intermediate.apply, lambda x: x * x.sin(), "second_order", X).likely


class FirstDimension(Function):
    """The sum of rows, whose rule for vmap takes the batch where it wants it."""

    @staticmethod
    def forward(x):
        return x.sum(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx, v):
        return v[..., None].expand(ctx.shape)

    @staticmethod
    def vmap(info, in_dims, x):
        return FirstDimension.apply(x), 0


def test_a_rule_for_vmap_that_takes_dimension_0_is_named():
    def other(x):
        return torch.cat([x, x]) if torch._C._functorch.maybe_current_level() else x

    found = first(FirstDimension.apply, lambda x: x.sum(-1), "vmap", X)
    wrong = first(lambda x: FirstDimension.apply(other(x)), lambda x: x.sum(-1), "vmap", X)

    assert "right where the batch is dimension 0" in found.likely
    assert "right where the batch is dimension 0" not in wrong.likely


class WrongInOne(Function):
    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, v):
        a, b = ctx.saved_tensors
        return v * b, v * a

    @staticmethod
    def jvp(ctx, a_dot, b_dot):
        a, b = ctx.saved_tensors
        return a_dot * b + 2 * b_dot * a


def test_the_argument_whose_term_of_a_tangent_is_wrong_is_named():
    spec = of(lambda a, b: a * b, lambda a, b, y, v: (v * b, v * a), (X, W), wrt=("a", "b"))
    spec = replace(spec, function=WrongInOne.apply, supports=Supports.eager(forward_mode=True))
    found = verify([spec], [one for one in LAWS if one.name == "jvp"], isolate=False).of(law="jvp")

    assert [v.finding.likely for v in found] == ["the term of `b` is wrong in it"]


class Claims(Function):
    """A gated signal and its gate, which is constant."""

    @staticmethod
    def forward(ctx, x):
        gate = (x > 0).to(x.dtype)
        ctx.save_for_backward(gate)
        return x * gate, gate

    @staticmethod
    def backward(ctx, v, _):
        return v * ctx.saved_tensors[0]


class Marks(Claims):
    @staticmethod
    def forward(ctx, x):
        y, gate = Claims.forward(ctx, x)
        ctx.mark_non_differentiable(gate)
        return y, gate


def test_an_output_that_claims_a_gradient_is_waste_and_named():
    def primal(x):
        gate = (x.detach() > 0).to(x.dtype)
        return x * gate, gate

    claims, marks = (first(f.apply, primal, "undefined_cotangent", X) for f in (Claims, Marks))

    assert "mark_non_differentiable" in claims.likely
    assert claims.rank == "waste"
    assert marks.status is Status.HOLDS


class Keeps(Function):
    """The square, with something on ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.kept = (x > 0).sum(0)
        return x * x

    @staticmethod
    def backward(ctx, v):
        return 2 * v * ctx.saved_tensors[0]


class KeepsItsOutput(Keeps):
    @staticmethod
    def forward(ctx, x):
        y = Keeps.forward(ctx, x)
        ctx.first, ctx.view = x.sum(), y.detach()
        return y


def test_what_a_tensor_on_ctx_can_do_decides_its_rank():
    count, output = (first(f.apply, lambda x: x * x, "ctx_clean", X) for f in (Keeps, KeepsItsOutput))

    assert (count.message, count.rank) == ("a tensor sits on ctx.kept", "waste")
    assert (output.message, output.rank) == ("a tensor sits on ctx.view, and is an output", "wrong")


def test_a_primal_that_takes_no_float32_leaves_nothing_to_compare_with_under_autocast():
    spec = of(lambda x: x @ W, lambda x, y, v: v @ W.T, (X,))
    spec = replace(spec, function=lambda x: x @ W.to(x.dtype), supports=Supports.eager(autocast=True))
    found = verify([spec], [one for one in LAWS if one.name == "autocast"], isolate=False).of(law="autocast")

    assert [v.status for v in found] == [Status.NOT_APPLICABLE]


class DecidesByASum(Function):
    """Twice x, or three times; torch.compile breaks its graph at it."""

    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2 if float(x.sum()) > -1e9 else 3
        return ctx.factor * x

    @staticmethod
    def backward(ctx, v):
        return ctx.factor * v


def test_a_broken_graph_is_waste_where_the_pieces_are_right():
    def elsewhere(x):
        return DecidesByASum.apply(x) + (1 if torch.compiler.is_compiling() else 0)

    right, wrong = (first(f, lambda x: 2 * x, "compile", X) for f in (DecidesByASum.apply, elsewhere))

    assert (right.status, right.rank) == (Status.NOT_PROMISED, "")
    assert "it breaks the graph" in right.message
    assert "it breaks the graph" not in wrong.message


class LossyBesideAClaim(Function):
    """As Lossy, with a constant beside it that is not marked as one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sin(), torch.ones_like(x)

    @staticmethod
    def backward(ctx, v, _):
        return Lossy.backward(ctx, v)


def test_an_output_that_claims_a_gradient_is_not_why_a_second_derivative_is_wrong():
    found = first(LossyBesideAClaim.apply, lambda x: (x * x.sin(), torch.ones_like(x)), "second_order", X)

    assert "mark_non_differentiable" not in found.likely
    assert "where they cut the graph" in found.likely


@pytest.mark.parametrize(
    ("backward", "likely"),
    [
        (lambda x, y, v: v.clamp(-1, 1) * x.cos(), "backward clips the cotangent: right for small ones"),
        (lambda x, y, v: v / v.norm() * x.cos(), "backward normalises the cotangent"),
        (lambda x, y, v: v * x.cos() + x, "backward adds what no cotangent has made"),
        (lambda x, y, v: x.cos(), "backward ignores the cotangent"),
    ],
)
def test_a_backward_that_is_not_linear_says_how(backward, likely):
    spec = of(lambda x: x.sin(), backward, (X,))
    laws = [law for law in LAWS if law.name in ("primal", "cotangent_linearity")]
    (found,) = verify([spec], laws).of(law="cotangent_linearity")
    noisy = of(lambda x: x.sin(), lambda *given: backward(*given) * (1 + 0.1 * torch.rand_like(X)), (X,))
    (draws,) = verify([noisy], laws).of(law="cotangent_linearity")

    assert (draws.finding.follows, draws.finding.likely) in [("declared_draws", ""), ("vjp", found.finding.likely)]
    assert (found.status, found.finding.likely.startswith(likely)) == (Status.BROKEN, True), found.finding


SPD = W @ W.T + torch.eye(3, dtype=torch.float64)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        # Clipped where the output lies on the bound.
        (
            of(
                lambda x, most: (x.clamp(min=0).minimum(most) * 15 / most).round() * most / 15,
                lambda x, most, y, v: v * (x < most),
                (X, torch.tensor(0.8, dtype=torch.float64)),
                surrogate=lambda x, most: torch.where(x >= most, most, x.clamp(min=0)),
            ),
            "at the output",
        ),
        # Clipped everywhere, and not ignored.
        (of(lambda x: x.sin(), lambda x, y, v: x.cos() * v.clamp(-1e-3, 1e-3), (X,)), "ignores its cotangent"),
        # Integers below a number, and no groups.
        (
            of(
                lambda x, shift, most: (x.round() + shift).clamp(-most, most) - shift,
                lambda x, shift, most, y, v: v * ((x.round() + shift) < most) * ((x.round() + shift) >= -most),
                (torch.tensor([[3.2, 0.3, -1.1], [0.7, -1.3, 0.4]], dtype=torch.float64), torch.tensor([0, 1, 0]), 3),
                surrogate=lambda x, shift, most: torch.where((x.detach().round() + shift).abs() <= most, x, x.detach()),
            ),
            "empty group",
        ),
    ],
)
def test_what_looks_alike_gets_no_hint_of_another_disease(spec, words):
    (said,) = likely({"it": spec}).values()

    assert words not in said


def test_a_solver_of_a_positive_definite_matrix_is_asked_of_others_of_its_kind():
    def solve(a, b):
        torch.linalg.cholesky(a)
        return torch.linalg.solve(a, b)

    def backward(a, b, y, v):
        b_bar = solve(a, v)
        return -y @ b_bar.T, b_bar

    (said,) = likely({"it": of(solve, backward, (SPD, X[:, :1]), wrt=("a", "b"))}).values()

    assert said == "it is the transpose of the right gradient"
