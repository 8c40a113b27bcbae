"""A function that runs an object whose tensors are arguments too: a right one is green, a broken one red."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import nn

import gradspec
from gradspec.law import Status


class Runs(torch.autograd.Function):
    """Right: runs again in backward what it was given, as an adjoint does."""

    @staticmethod
    def forward(ctx, x, run, *own):
        ctx.run = run
        ctx.save_for_backward(x, *own)
        with torch.no_grad():
            return called(run, x)

    @staticmethod
    def backward(ctx, grad):
        x, *own = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            found = torch.autograd.grad(called(ctx.run, x), (x, *own), grad)
        return found[0], None, *found[1:]


class Twice(Runs):
    @staticmethod
    def backward(ctx, grad):
        x, _, first, *rest = Runs.backward(ctx, grad)
        return x, None, 2 * first, *rest


class Loses(Runs):
    @staticmethod
    def backward(ctx, grad):
        x, _, _, *rest = Runs.backward(ctx, grad)
        return x, None, None, *rest


class Exchanges(Runs):
    @staticmethod
    def backward(ctx, grad):
        x, _, first, second = Runs.backward(ctx, grad)
        return x, None, second, first


def called(run, x):
    for one in run if isinstance(run, list) else [run]:
        x = one(x)
    return x


@dataclass(frozen=True)
class Pair:
    a: torch.Tensor
    b: torch.Tensor

    def __call__(self, x):
        return two(self.a, self.b, x)


class Slotted:
    __slots__ = ("held",)

    def __init__(self, *held):
        self.held = {"all": held}

    def run(self, x):
        return two(*self.held["all"], x)


def two(a, b, x):
    return torch.tanh(x @ a) @ b


def layers():
    return [nn.Linear(3, 3, bias=False), nn.Tanh(), nn.Linear(3, 3, bias=False)]


def in_a_closure(a, b):
    def inner(x):
        return two(a, b, x)

    return lambda x: inner(x)


def in_globals(a, b):
    scope = {"two": two, "a": a, "b": b}
    return eval("lambda x: [two(a, b, one) for one in [x]][0]", scope)


def of_modules(made):
    modules = nn.ModuleList(made if isinstance(made, list) else [made])
    return made, tuple(modules.double().parameters())


def of_tensors(made):
    own = tuple(torch.linspace(k, 1, 9, dtype=torch.float64).view(3, 3).requires_grad_() for k in (-1, 0.2))
    return made(*own), own


OBJECTS = {
    "module": lambda: of_modules(nn.Sequential(*layers())),
    "list of modules": lambda: of_modules(layers()),
    "bound method": lambda: (lambda module, own: (module.forward, own))(*of_modules(nn.Sequential(*layers()))),
    "closure": lambda: of_tensors(in_a_closure),
    "globals": lambda: of_tensors(in_globals),
    "partial": lambda: of_tensors(lambda a, b: partial(partial(two, a), b)),
    "dataclass": lambda: of_tensors(Pair),
    "slots": lambda: of_tensors(lambda a, b: Slotted(a, b).run),
    "alias": lambda: of_tensors(lambda a, b: Pair(a.view_as(a), b.view_as(b))),
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def x_of():
    return torch.linspace(-1, 1.5, 6, dtype=torch.float64).view(2, 3).requires_grad_()


def surrogate(function, run, own, x=None):
    x = x_of() if x is None else x
    (verdict,) = gradspec.audit(function, [(x, run, *own)], laws=["surrogate"]).report.verdicts
    return verdict


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_function_that_runs_its_own_tensors_is_right(kind):
    run, own = OBJECTS[kind]()
    before = [t.detach().clone() for t in own]
    assert surrogate(Runs, run, own).status is Status.HOLDS
    assert all(map(torch.equal, own, before))


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize(
    ("broken", "likely"),
    [
        (Twice, "the gradient of `own[0]` is off by the factor 2, and right for `x` and `own[1]`"),
        (Exchanges, "backward returns the gradients of `own[0]` and `own[1]` in each other's place: mind the order"),
        (Loses, ""),
    ],
)
@pytest.mark.slow
def test_a_broken_twin_is_found_with_its_cause(kind, broken, likely):
    assert_found(OBJECTS[kind](), broken, likely)


def test_a_broken_twin_that_runs_a_method_is_found_with_its_cause():
    assert_found(
        OBJECTS["bound method"](),
        Twice,
        "the gradient of `own[0]` is off by the factor 2, and right for `x` and `own[1]`",
    )


def assert_found(made, broken, likely):
    run, own = made
    verdict = surrogate(broken, run, own)
    assert verdict.status is Status.BROKEN
    assert verdict.finding.likely.partition("; right with")[0] == likely
    if broken is Loses:
        assert verdict.finding.message == "backward returns no gradient for `own[0]`, and the output moves with it"


@pytest.mark.parametrize(("broken", "status"), [(Runs, Status.HOLDS), (Twice, Status.BROKEN)])
def test_a_tied_parameter_moves_wherever_it_is(broken, status):
    first, tanh, last = layers()
    last.weight = first.weight
    run, own = of_modules(nn.Sequential(first, tanh, last))
    assert len(own) == 1
    assert surrogate(broken, run, own).status is status


def test_a_parameter_that_is_given_twice_gets_the_gradient_of_both():
    run, (weight,) = of_modules(nn.Linear(3, 3, bias=False))

    class Halves(Runs):
        @staticmethod
        def backward(ctx, grad):
            x, _, whole, _ = Runs.backward(ctx, grad)
            return x, None, 0.25 * whole, 0.75 * whole

    assert surrogate(Halves, run, (weight, weight)).status is Status.HOLDS


def test_a_tensor_that_was_cut_off_is_a_constant():
    class Beside(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, anchor):
            ctx.save_for_backward(x)
            ctx.anchor = anchor
            return (x - anchor.a - 1).square()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * (x - ctx.anchor.a - 1) * grad, None

    x = x_of()
    (verdict,) = gradspec.audit(Beside, [(x, Pair(x.detach(), None))], laws=["surrogate"]).report.verdicts
    assert verdict.status is Status.HOLDS


@pytest.mark.parametrize(("broken", "status"), [(Runs, Status.HOLDS), (Twice, Status.BROKEN)])
def test_statistics_of_a_module_are_as_before(broken, status, monkeypatch):
    for where in ("_audit._apart", "_engine._parallel", "_engine._rounding", "_engine._session"):
        monkeypatch.setattr(f"gradspec.{where}.available", lambda _: False)
    run = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Tanh())
    run[0].weight.grad = torch.ones(3, 3)
    before = {name: value.clone() for name, value in run.state_dict().items()}
    verdict = surrogate(broken, run.forward, tuple(run.parameters()), torch.randn(6, 3).requires_grad_())
    assert verdict.status is status
    assert {name: value.tolist() for name, value in run.state_dict().items()} == {
        n: t.tolist() for n, t in before.items()
    }
    assert run[0].weight.grad.tolist() == [[1.0] * 3] * 3
