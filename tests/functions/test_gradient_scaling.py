"""What no law says of GradFactor and GradMultiply: exact values, refusals in odd places, every transform at once."""

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint

from gradspec._engine._verify import verify
from gradspec.functions import GRAD_FACTOR, GRAD_MULTIPLY, GradFactor, GradMultiply, grad_factor, grad_multiply
from gradspec.laws import LAWS
from gradspec.spec import FunctionSpec
from gradspec.spec._maker import Maker
from gradspec_lab.specimens import HONEST

CLASSES = (GradFactor, GradMultiply)
SCALING = (GRAD_FACTOR, GRAD_MULTIPLY)
WEIGHTS = torch.tensor([1.0, 2.0, 3.0])
# What gradcheck can take: functions without state, whose second derivative is promised.
CHECKABLE = [
    *(s for s in HONEST if type(s) is FunctionSpec and s.supports.double_backward and not s.effects.writes),
    GRAD_MULTIPLY,
]
# The specimens whose gradient is the derivative of their forward.
HONEST_GRADIENTS = ("cube", "product")
DECLARED = [3.0, 6.0, 9.0]


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


@pytest.fixture(params=[3.0, torch.tensor(3.0), torch.tensor([3.0, 3.0, 3.0])], ids=["float", "0-d", "a row"])
def factor(request, device):
    return request.param.to(device) if isinstance(request.param, torch.Tensor) else request.param


@pytest.fixture
def loss(cls, factor, device):
    weights = WEIGHTS.to(device)
    return lambda x: (cls.apply(x, factor) * weights).sum()


def leaf(device):
    return torch.ones(3, device=device, requires_grad=True)


def backward(loss, device):
    x = leaf(device)
    loss(x).backward()
    return x.grad.tolist()


class Exported(torch.nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, x):
        return self.loss(x)


def by_export(loss, device, strict):
    return backward(torch.export.export(Exported(loss), (leaf(device),), strict=strict).module(), device)


def by_dual_tensors(loss, device):
    rows = []
    for direction in torch.eye(3, device=device):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(3, device=device), direction)
            rows.append(forward_ad.unpack_dual(loss(dual)).tangent.item())
    return rows


def compiled(function, **how):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager", **how)


# The first table of the design notes on transforms, row by row.
TRANSFORMS = {
    "autograd": backward,
    "func.grad": lambda f, d: torch.func.grad(f)(torch.ones(3, device=d)).tolist(),
    "jacfwd": lambda f, d: torch.func.jacfwd(f)(torch.ones(3, device=d)).tolist(),
    "jacrev": lambda f, d: torch.func.jacrev(f)(torch.ones(3, device=d)).tolist(),
    "dual tensors": by_dual_tensors,
    "vmap(grad)": lambda f, d: torch.vmap(torch.func.grad(f))(torch.ones(2, 3, device=d))[1].tolist(),
    "compile": lambda f, d: backward(compiled(f), d),
    "compile(dynamic)": lambda f, d: backward(compiled(f, dynamic=True), d),
    "compile(grad)": lambda f, d: compiled(torch.func.grad(f))(torch.ones(3, device=d)).tolist(),
    "compile(vmap(grad))": lambda f, d: compiled(torch.vmap(torch.func.grad(f)))(torch.ones(2, 3, device=d))[
        1
    ].tolist(),
    "compile(jvp)": lambda f, d: [
        compiled(lambda x, u: torch.func.jvp(f, (x,), (u,))[1])(torch.ones(3, device=d), u).item()
        for u in torch.eye(3, device=d)
    ],
    "export(strict)": lambda f, d: by_export(f, d, strict=True),
    "export": lambda f, d: by_export(f, d, strict=False),
    "checkpoint": lambda f, d: backward(lambda x: checkpoint(f, x, use_reentrant=False), d),
}


#: Those of which another row says as much at first sight.
ALIKE = ("compile(dynamic)", "compile(vmap(grad))", "export(strict)")


@pytest.mark.slow
@pytest.mark.parametrize(
    "transform", [pytest.param(one, marks=pytest.mark.slow if one in ALIKE else ()) for one in TRANSFORMS]
)
def test_the_declared_gradient_survives(transform, loss, device):
    assert TRANSFORMS[transform](loss, device) == DECLARED


def test_the_hessian_is_that_of_the_surrogate_in_forward_over_reverse(cls, device):
    hessian = torch.func.hessian(lambda x: (cls.apply(x, 3.0) ** 3).sum())(torch.ones(2, device=device))

    # d/dx of f * 3 y^2 with y = x, where the inner derivative is scaled once more: f * f * 6.
    assert hessian.tolist() == [[54.0, 0.0], [0.0, 54.0]]


@pytest.mark.parametrize("way", [lambda f: f, compiled], ids=["eager", "compile"])
def test_special_values_pass_bit_for_bit(cls, way, device):
    x = torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0, 0.0, 1e-320], dtype=torch.float64, device=device)

    y = way(lambda x: cls.apply(x, 0.5))(x)

    assert y.view(torch.int64).tolist() == x.view(torch.int64).tolist()


def test_a_factor_of_zero_gives_zeros_and_not_none(cls, device):
    x = leaf(device)
    cls.apply(x, 0.0).sum().backward()

    assert x.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_gradient_keeps_a_half_precision(cls, dtype, device):
    x = torch.ones(3, dtype=dtype, device=device, requires_grad=True)
    cls.apply(x, torch.tensor(0.5, dtype=torch.float64, device=device)).sum().backward()

    assert (x.grad.dtype, x.grad.tolist()) == (dtype, [0.5, 0.5, 0.5])


def test_in_place_on_the_output_raises_and_on_a_clone_does_not(cls, device):
    x = leaf(device)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        cls.apply(x * 1, 2.0).relu_()

    cls.apply(x * 1, 2.0).clone().relu_().sum().backward()

    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_factor_that_requires_grad_is_refused_without_grad_too(cls, device):
    factor = torch.tensor(2.0, device=device, requires_grad=True)

    with torch.no_grad(), pytest.raises(ValueError, match="requires grad"):
        cls.apply(leaf(device), factor)


def test_a_factor_under_differentiation_is_refused(cls):
    with pytest.raises(ValueError, match="requires grad"):
        torch.func.grad(lambda f: cls.apply(torch.ones(3), f).sum())(torch.tensor(2.0))
    with pytest.raises(ValueError, match="carries a tangent"):
        torch.func.jvp(lambda f: cls.apply(torch.ones(3), f), (torch.tensor(2.0),), (torch.tensor(1.0),))


@pytest.mark.parametrize(
    ("spec", "wrapper"),
    [
        pytest.param(SCALING[0], grad_factor, id="grad_factor", marks=pytest.mark.slow),
        pytest.param(SCALING[1], grad_multiply, id="grad_multiply", marks=pytest.mark.slow),
    ],
)
def test_the_plain_wrapper_keeps_the_promise_of_its_class(spec, wrapper):
    # By position: the wrapper names its arguments in words.
    held = spec.for_(wrapper, name=wrapper.__name__, implementation=spec.autograd_function)
    laws = [law for law in LAWS if law.name != "keyword_call" and law.cost == "ms"]

    assert verify([held], laws).failures == ()


def floating_cases(spec: FunctionSpec, device):
    for case in spec.cases(Maker(0, device)):
        tensors = [a for a in case.args if isinstance(a, torch.Tensor)]
        if tensors[0].dtype in (torch.float64, torch.complex128) and tensors[0].numel():
            yield case


def as_inputs(spec, case):
    return [
        a.detach().clone().requires_grad_() if name in spec.wrt else a
        for name, a in zip(spec.parameters, case.args, strict=True)
    ]


@pytest.mark.parametrize("spec", CHECKABLE, ids=lambda spec: spec.name)
def test_gradcheck_accepts_every_surrogate(spec, device):
    for case in floating_cases(spec, device):
        assert gradcheck(spec.surrogate, as_inputs(spec, case))
        assert gradgradcheck(spec.surrogate, as_inputs(spec, case))


@pytest.mark.parametrize("spec", CHECKABLE, ids=lambda spec: spec.name)
def test_gradcheck_judges_the_functions_whose_gradient_is_that_of_forward(spec, device):
    for case in floating_cases(spec, device):
        inputs = as_inputs(spec, case)
        if spec.name in HONEST_GRADIENTS:
            assert gradcheck(spec.function, inputs, check_forward_ad=True)
        assert gradgradcheck(spec.function, inputs)


@pytest.mark.parametrize("spec", SCALING, ids=lambda spec: spec.name)
def test_gradcheck_is_blind_to_a_declared_gradient(spec, device):
    # Why the engine exists: gradcheck calls every factor but 1 an error, on a sound function too.
    x = torch.ones(3, dtype=torch.float64, device=device, requires_grad=True)

    assert gradcheck(spec.function, (x, 1.0))
    assert not gradcheck(spec.function, (x, 3.0), raise_exception=False)


@pytest.mark.parametrize("inner", [lambda f: f, torch.func.grad, lambda f: torch.func.jacrev(f)])
def test_forward_mode_around_vmap_and_others_has_the_declared_derivative(cls, inner):
    def of_each(x):
        return torch.vmap(inner(lambda each: cls.apply(each, 3.0) ** 2))(x)

    x, x_dot = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0])
    # Of x^2 with x itself in the forward pass and 3 x in the derivative: 2 x 3, and of its gradient 2 x 3 x 3.
    declared = [6.0, 120.0] if inner(abs) is abs else [18.0, 180.0]
    assert torch.func.jvp(of_each, (x,), (x_dot,))[1].tolist() == declared
    with forward_ad.dual_level():
        y = of_each(forward_ad.make_dual(x, x_dot))
        assert forward_ad.unpack_dual(y).tangent.tolist() == declared


def test_a_wider_factor_widens_no_tangent_of_a_complex_tensor(cls):
    x, factor = torch.ones(2, dtype=torch.complex64), torch.full((2,), 0.5, dtype=torch.float64)
    y, y_dot = torch.func.jvp(lambda x: cls.apply(x, factor), (x,), (x,))
    assert (y.dtype, y_dot.dtype) == (torch.complex64, torch.complex64)
    assert y_dot.tolist() == [0.5, 0.5]
