"""Why a call raises, returns another dtype or moves its state too far, where calls show it; and look-alikes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch._C._functorch import is_batchedtensor
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports
from gradspec._engine._check import run_check
from gradspec._engine._plan import plan
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.spec import Effects
from gradspec_lab.specimens import DISEASED

PROFILE = load_profile("quick")


def likely(spec, law):
    """Return what is said of the first failure of a law; None where it has none."""
    (only,) = [one for one in LAWS if one.name == law]
    found = (run_check(check, PROFILE).finding for check in plan([spec], [only], PROFILE))
    return next((finding.likely for finding in found if finding.is_failure), None)


class Double(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar


def cases(make):
    yield Case(name="rows", args=(make(2, 3),))


def no_rows(make):
    yield Case(name="empty", args=(make(0, 3),))


DOUBLE = FunctionSpec(
    name="double",
    function=Double.apply,
    primal=lambda x: 2 * x,
    wrt=("x",),
    cases=cases,
    supports=Supports.all(),
)


class Reads(Double):
    @staticmethod
    def forward(x):
        return 2 * x if x.sum().item() > -1e9 else x


class ReadsInBackward(Double):
    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar * (1 if y_bar[y_bar > 1e9].numel() == 0 else 2)


class ReadsBesideAnError(Double):
    """Reads a value in the line that raises, for another reason."""

    @staticmethod
    def forward(x):
        return 2 * x + (x.new_zeros(2).view(3) if is_batchedtensor(x) else 0 * float(x.sum()))


class ReadsOnlyUnderVmap(Double):
    """A plain call reads nothing: what torch says is not of a read that was seen."""

    @staticmethod
    def forward(x):
        return x * (2 if not is_batchedtensor(x) else x.sum().item())


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (Reads, "forward reads a value at test_causes_of_refusals.py:"),
        (ReadsInBackward, "backward reads a value at test_causes_of_refusals.py:"),
    ],
)
def test_a_read_is_named_in_the_line_that_raised(function, words):
    assert likely(replace(DOUBLE, function=function.apply), "vmap").startswith(words)


@pytest.mark.parametrize("function", [ReadsBesideAnError, ReadsOnlyUnderVmap])
def test_a_read_is_not_named_where_torch_or_a_plain_call_does_not_show_one(function):
    assert likely(replace(DOUBLE, function=function.apply), "vmap") == ""


class TakesTheLargest(Double):
    @staticmethod
    def forward(x):
        return 2 * x + 0 * x.max()


class Refuses(Double):
    @staticmethod
    def forward(x):
        raise ValueError("not today")


@pytest.mark.parametrize("law", ["primal", "vjp"])
@pytest.mark.parametrize(("function", "words"), [(TakesTheLargest, "the call runs with one row"), (Refuses, "")])
def test_a_batch_without_rows_is_named_where_one_row_runs(function, words, law):
    found = likely(replace(DOUBLE, function=function.apply, cases=no_rows), law)
    assert found.startswith(words)
    assert bool(found) == bool(words)


class InFloat32(Double):
    @staticmethod
    def forward(x):
        return (2 * x).float()


class HalfInFloat32(Double):
    @staticmethod
    def forward(x):
        return x.float()


def test_another_dtype_has_the_right_numbers_where_they_agree():
    right = "the numbers are right to the rounding of float32: compute them, and return them, in float64"
    assert likely(replace(DOUBLE, function=InFloat32.apply), "primal") == right
    assert likely(replace(DOUBLE, function=HalfInFloat32.apply), "primal") == ""
    assert (
        likely(DISEASED["promotes_low_precision"].spec, "precision") == "the numbers are right: return them in bfloat16"
    )


def moving(move):
    """Return a function that moves a total in its backward pass, and the spec by which it moves by the sum of x."""

    class Tally(Function):
        @staticmethod
        def forward(x, total):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.x, ctx.total = inputs[0].detach(), inputs[1]

        @staticmethod
        def backward(ctx, y_bar):
            torch.autograd.Variable._execution_engine.queue_callback(lambda: move(ctx.total, ctx.x))
            return 2 * y_bar, None

    def states(make):
        yield Case(name="rows", args=(make(2, 3), make(3)))

    return FunctionSpec(
        name="tally",
        function=Tally.apply,
        primal=lambda x, total: 2 * x,
        wrt=("x",),
        cases=states,
        effects=Effects(writes=("total",)),
        state_after=lambda x, total: {"total": total + x.sum(0)},
    )


@pytest.mark.parametrize(
    ("move", "words"),
    [
        (lambda total, x: total.add_(2 * x.sum(0)), "it moves 2 times as far as it should"),
        (lambda total, x: None, "it stays as it was"),
        (lambda total, x: total.add_(x.sum(0) + 1), ""),
        (lambda total, x: total.add_(x.sum(0) * (1 + 1e-9)), ""),
    ],
)
def test_how_far_a_state_moves_is_said_where_it_is_one_number(move, words):
    assert likely(moving(move), "state_transition") == words


def test_a_function_that_seeds_itself_draws():
    assert "draws none" not in likely(DISEASED["seeds_in_forward"].spec, "primal")
