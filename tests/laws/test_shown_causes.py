"""What a law says of the cause is shown by calls of the function; a look-alike that fails in the same law lacks it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy
import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports
from gradspec._engine._check import run_check
from gradspec._engine._plan import plan
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec_lab.specimens import DISEASED
from gradspec_lab.specimens.noisy import NOISE, SHAKEN, Shaken, drawn

PROFILE = load_profile("quick")


def likely(spec, law):
    """Return what is said of the first violation of a law; None where it has none."""
    (only,) = [one for one in LAWS if one.name == law]
    found = (run_check(check, PROFILE).finding for check in plan([spec], [only], PROFILE))
    return next((finding.likely for finding in found if finding.status is Status.BROKEN), None)


def read_in_order(t):
    return torch.as_strided(t, t.shape, torch.empty(t.shape).stride(), t.storage_offset())


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * y_bar


class ReadsMemory(Cube):
    @staticmethod
    def forward(ctx, x):
        return Cube.forward(ctx, read_in_order(x))


class ReadsMemoryInBackward(Cube):
    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * read_in_order(x) ** 2 * y_bar


class AsksForStrides(Cube):
    @staticmethod
    def backward(ctx, y_bar):
        return Cube.backward(ctx, y_bar) * (1 if ctx.saved_tensors[0].is_contiguous() else 2)


class WantsContiguous(Cube):
    @staticmethod
    def forward(ctx, x):
        if not x.is_contiguous():
            raise ValueError("x must be contiguous")
        return Cube.forward(ctx, x)


class Views(Cube):
    @staticmethod
    def forward(ctx, x):
        return Cube.forward(ctx, x.view(-1).view(x.shape))


class ReadsMemoryOfTheCotangent(Cube):
    @staticmethod
    def backward(ctx, y_bar):
        return Cube.backward(ctx, read_in_order(y_bar))


class AsksForStridesOfTheCotangent(Cube):
    @staticmethod
    def backward(ctx, y_bar):
        return Cube.backward(ctx, y_bar) * (1 if y_bar.is_contiguous() else 2)


def cases(make):
    yield Case(name="rows", args=(make(2, 3),))


def one_row(make):
    yield Case(name="row", args=(make(4),))


CUBE = FunctionSpec(name="cube", function=Cube.apply, primal=lambda x: x**3, wrt=("x",), cases=cases)

READ = "memory is read as if it were contiguous"
RIGHT = "right where the same numbers are contiguous"


@pytest.mark.parametrize("of", [cases, one_row])
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (ReadsMemory, READ),
        (ReadsMemoryInBackward, READ),
        (AsksForStrides, RIGHT),
    ],
)
def test_that_memory_is_read_in_order_is_said_of_what_gives_those_numbers(function, words, of):
    assert likely(replace(CUBE, function=function.apply, cases=of), "layout").startswith(words)


@pytest.mark.parametrize(("function", "words"), [(Views, "view() where reshape() is needed"), (WantsContiguous, "")])
def test_a_view_is_named_where_torch_refuses_one(function, words):
    assert likely(replace(CUBE, function=function.apply), "layout") == words


@pytest.mark.parametrize(
    ("specimen", "law"),
    [
        ("changes_its_factor", "layout"),
        ("gradient_of_another_function", "layout"),
        ("gradient_of_another_function", "cotangent_layout"),
    ],
)
def test_strides_are_not_named_where_contiguous_numbers_are_wrong(specimen, law):
    assert "contiguous" not in likely(DISEASED[specimen].spec, law)


def test_one_of_two_arguments_is_read_in_order():
    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, y_bar):
            a, b = ctx.saved_tensors
            return b * y_bar, read_in_order(a) * y_bar

    def pairs(make):
        yield Case(name="pair", args=(make(2, 3), make(2, 3)))

    spec = FunctionSpec(name="x", function=Product.apply, primal=lambda a, b: a * b, wrt=("a", "b"), cases=pairs)
    assert likely(spec, "layout").startswith(READ)


@pytest.mark.parametrize("of", [cases, one_row])
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (ReadsMemoryOfTheCotangent, "backward reads the memory of the cotangent"),
        (AsksForStridesOfTheCotangent, "right where the same cotangent is contiguous"),
    ],
)
def test_the_memory_of_a_cotangent_is_read_in_order(function, words, of):
    assert likely(replace(CUBE, function=function.apply, cases=of), "cotangent_layout").startswith(words)


class KeepsOnTheClass(Cube):
    @staticmethod
    def forward(ctx, x):
        KeepsOnTheClass.x = x
        return x**3

    @staticmethod
    def backward(ctx, y_bar):
        return 3 * KeepsOnTheClass.x**2 * y_bar


class Stale(Cube):
    """Right where backward comes right after forward, whatever was called in between."""

    last = None

    @staticmethod
    def forward(ctx, x):
        Stale.last = ctx.own = object()
        return Cube.forward(ctx, x)

    @staticmethod
    def backward(ctx, y_bar):
        return Cube.backward(ctx, y_bar) * (1 if Stale.last is ctx.own else 2)


def of_size(make):
    yield from (Case(name=f"{n}", args=(make(2, 2), n)) for n in (2, 3))


class KeepsASetting(Function):
    @staticmethod
    def forward(ctx, x, factor):
        KeepsASetting.factor = factor
        return factor * x

    @staticmethod
    def backward(ctx, y_bar):
        return KeepsASetting.factor * y_bar, None


class CountsCalls(Function):
    """Wrong from the third call that waits for its backward pass."""

    calls = 0

    @staticmethod
    def forward(ctx, x, factor):
        CountsCalls.calls += 1
        ctx.factor, ctx.call = factor, CountsCalls.calls
        return factor * x

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar * (1 if CountsCalls.calls == ctx.call else 2), None


ON_THE_CLASS = "forward keeps something on the class"
SETTING = FunctionSpec(name="f", function=KeepsASetting.apply, primal=lambda x, n: n * x, wrt=("x",), cases=of_size)


def test_what_another_call_puts_in_place_is_not_put_there_by_the_same_call():
    assert likely(replace(CUBE, function=KeepsOnTheClass.apply), "interleaved").startswith(ON_THE_CLASS)
    assert ON_THE_CLASS not in likely(replace(CUBE, function=Stale.apply), "interleaved")
    assert ON_THE_CLASS not in likely(DISEASED["changes_its_factor"].spec, "interleaved")


def test_what_another_case_puts_in_place_is_not_put_there_by_the_same_case():
    assert likely(SETTING, "earlier_calls").startswith(ON_THE_CLASS)
    assert ON_THE_CLASS not in likely(replace(SETTING, function=CountsCalls.apply), "earlier_calls")


class AsksForAGraph(Cube):
    @staticmethod
    def forward(ctx, x):
        return Cube.forward(ctx, x) * (1 if x.requires_grad else 2)


def test_a_graph_is_asked_for_where_each_way_gives_its_own_value():
    asking = replace(CUBE, function=AsksForAGraph.apply)
    assert likely(asking, "inference") == "forward asks whether a graph is recorded"
    assert "graph" not in likely(DISEASED["changes_its_factor"].spec, "inference")


class DoublesUnderAutocast(Cube):
    @staticmethod
    def forward(ctx, x):
        return Cube.forward(ctx, x) * (2 if torch.is_autocast_enabled("cpu") else 1)


@pytest.mark.parametrize(
    ("specimen", "is_lower"),
    [
        ("rounds_to_half_under_autocast", True),
        ("rounds_inside", True),
        ("autocast_rounds_a_phase", True),
        ("gradient_of_another_function", False),
        ("state_moved_in_forward", False),
    ],
)
def test_a_lower_precision_is_named_where_float64_is_right_and_the_error_is_its_own(specimen, is_lower):
    assert ("lower precision" in likely(DISEASED[specimen].spec, "autocast")) == is_lower


def test_a_factor_under_autocast_is_no_lower_precision():
    assert "lower precision" not in likely(replace(CUBE, function=DoublesUnderAutocast.apply), "autocast")


@pytest.mark.parametrize(
    ("specimen", "words"),
    [
        ("gradient_on_cuda_alone", "one is registered for cuda only: use register_autograd"),
        ("no_gradient_registered", "none is registered for any device: use register_autograd"),
    ],
)
def test_the_device_is_named_for_which_a_gradient_is_registered(specimen, words):
    assert likely(DISEASED[specimen].spec, "kernels").startswith(words)


def shaking(backward):
    """Return the sound function that draws its noise, with another backward."""

    class Other(Shaken):
        pass

    Other.backward = staticmethod(backward)
    form = replace(NOISE, drawing=lambda x: Other.apply(x, drawn(x), drawn(x)))
    return replace(SHAKEN, noise=form)


def drifting_over_a_graph(ctx, y_bar):
    ctx.passes = getattr(ctx, "passes", 0) + 1
    return (ctx.passes * Shaken.backward(ctx, y_bar)[0], None, None)


def drifting(ctx, y_bar, drift=itertools.count(1)):  # noqa: B008  # kept, on purpose
    return (next(drift) * Shaken.backward(ctx, y_bar)[0], None, None)


def test_backward_draws_anew_where_a_state_of_the_generators_decides_its_gradient():
    assert likely(DISEASED["draws_in_backward"].spec, "replayed") == "backward draws anew"
    assert likely(DISEASED["one_draw_an_element"].spec, "replayed") == "backward draws anew"
    assert "draws" not in likely(shaking(drifting_over_a_graph), "replayed")


def from_numpy(x):
    return Shaken.apply(x, drawn(x), torch.as_tensor(numpy.random.rand(len(x), 1), dtype=x.dtype))


def test_a_generator_is_named_that_is_drawn_from():
    assert likely(DISEASED["own_generator"].spec, "replayed") == "a generator that torch does not seed"
    assert "generator" not in likely(shaking(drifting), "replayed")
    found = likely(replace(SHAKEN, noise=replace(NOISE, drawing=from_numpy)), "replayed")
    assert found == "forward draws from numpy's generator, which checkpointing does not rewind"


def negated(ctx, y_bar):
    return tuple(None if g is None else -g for g in Shaken.backward(ctx, y_bar))


def zero(ctx, y_bar):
    return (torch.zeros_like(y_bar), None, None)


def one_element_off(ctx, y_bar):
    gradient = Shaken.backward(ctx, y_bar)[0].clone()
    gradient[..., 0] *= 1 + 1e-6
    return (gradient, None, None)


@pytest.mark.parametrize("backward", [negated, zero, one_element_off])
def test_a_wrong_gradient_is_no_number_of_draws(backward):
    assert likely(shaking(backward), "distribution") == ""


def test_draws_are_counted_that_differ_from_call_to_call():
    assert likely(DISEASED["one_draw_a_batch"].spec, "distribution") == "20000 samples share one draw"
    assert likely(DISEASED["one_draw_an_element"].spec, "distribution") == "a number is drawn an element"
    assert likely(DISEASED["same_noise_both_ways"].spec, "distribution") == "one draw is used twice"


@pytest.mark.parametrize(
    ("specimen", "is_of_rule"),
    [
        ("vmap_rule_of_the_first_dimension", True),
        ("operator_vmap_rule_of_the_first_dimension", True),
        ("misreads_a_strided_input", False),
        ("images_in_order_of_memory", False),
    ],
)
def test_a_vmap_rule_is_named_where_there_is_one_and_each_element_is_right(specimen, is_of_rule):
    assert ("`vmap` rule" in likely(DISEASED[specimen].spec, "vmap")) == is_of_rule


@pytest.mark.parametrize(
    ("specimen", "words"),
    [
        ("untracked_alias", "NumPy computes on the host"),
        ("lists_its_cotangent", "tolist() makes numbers"),
        ("counts_with_a_mask", "a boolean mask as an index"),
        ("branches_on_a_value", ".item(), float(), int(), or a branch"),
    ],
)
def test_what_reads_a_value_is_what_was_seen(specimen, words):
    assert likely(DISEASED[specimen].spec, "no_host_read").startswith(words)


class Exported(Cube):
    """Leaves the Function out of an exported program; a strict export sees its jvp before."""

    @classmethod
    def apply(cls, x):
        return x**3 if torch.compiler.is_exporting() else super().apply(x)

    @staticmethod
    def jvp(ctx, x_dot):
        return 3 * ctx.saved_tensors[0] ** 2 * x_dot


def test_a_branch_for_export_is_not_advised_where_it_is():
    without, has_one = (replace(CUBE, function=f.apply, supports=Supports.all()) for f in (Cube, Exported))
    assert likely(without, "export").startswith("while `torch.compiler.is_exporting()`")
    assert likely(has_one, "export").startswith("do not promise it")


def test_what_is_kept_of_a_tensor_that_is_written_to_is_said():
    assert "kept by its address" in likely(DISEASED["prepared_once"].spec, "earlier_calls")
