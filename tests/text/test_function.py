"""Function.apply: both usages, what is tracked, what the outputs are, and what a wrong backward is told."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from gradspec.text import Function, Variable, backward, enable_grad, no_grad


def leaf(data: Any = "a", role: str = "") -> Variable:
    return Variable(data, role=role, requires_grad=True)


class Combined(Function):
    @staticmethod
    def forward(ctx, x, suffix="!"):
        ctx.suffix = suffix
        return Variable(x.data + suffix)

    @staticmethod
    def backward(ctx, grad):
        return Variable(f"{grad.data}{ctx.suffix}"), None


class Separate(Function):
    seen: Any = None

    @staticmethod
    def forward(x, suffix="!"):
        return Variable(x.data + suffix)

    @staticmethod
    def setup_context(ctx, inputs, output):
        Separate.seen = (inputs, output)
        ctx.suffix = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return Variable(f"{grad.data}{ctx.suffix}"), None


class KeywordOnly(Function):
    @staticmethod
    def forward(ctx, x, *, y, **others):
        return Variable(x.data + y.data)

    @staticmethod
    def backward(ctx, grad):
        ctx.flags = ctx.needs_input_grad
        return tuple(grad if needed else None for needed in ctx.needs_input_grad)


def passing(n: int) -> type[Function]:
    """Return a Function of n outputs that records what its backward gets."""

    class Passing(Function):
        got: Any = None

        @staticmethod
        def forward(ctx, *xs):
            return tuple(Variable(x.data) for x in xs[:n])

        @staticmethod
        def backward(ctx, *grads):
            Passing.got = grads
            return grads

    return Passing


def returning(value: Any) -> type[Function]:
    class Returning(Function):
        @staticmethod
        def forward(ctx, *xs):
            return Variable("out")

        @staticmethod
        def backward(ctx, grad):
            return value

    return Returning


@pytest.mark.parametrize("function", [Combined, Separate])
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f, x: f.apply(x), "a!"),
        (lambda f, x: f.apply(x, "?"), "a?"),
        (lambda f, x: f.apply(x, suffix="?"), "a?"),
        (lambda f, x: f.apply(suffix="?", x=x), "a?"),
    ],
    ids=["default", "positional", "keyword", "keywords swapped"],
)
def test_both_usages_take_arguments_by_place_and_by_name(function, call, text) -> None:
    x = leaf()
    y = call(function, x)
    assert (y.data, y.grad_fn.needs_input_grad) == (text, (True, False))
    y.backward(Variable("g"))
    assert x.grad.data == "g" + text[-1]


def test_setup_context_gets_the_inputs_with_defaults_and_the_output() -> None:
    x = leaf()
    y = Separate.apply(x)
    assert Separate.seen == ((x, "!"), y)


def test_keyword_only_arguments_have_slots_in_the_order_of_the_signature() -> None:
    x, y, z = leaf("x"), leaf("y"), leaf("z")
    out = KeywordOnly.apply(x, more=z, y=y)
    assert out.grad_fn.needs_input_grad == (True, True, True)
    out.backward(Variable("g"))
    assert [v.grad.data for v in (x, y, z)] == ["g", "g", "g"]


def test_a_default_that_was_left_out_needs_no_gradient_in_return() -> None:
    class Short(Combined):
        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf()
    Short.apply(x).backward(Variable("g"))
    assert x.grad.data == "g"
    with pytest.raises(RuntimeError, match=r"ShortBackward returned an incorrect number .* \(expected 2, got 1\)"):
        Short.apply(x, "?").backward(Variable("g"))


def test_wrong_arguments_are_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="too many positional arguments"):
        Combined.apply(leaf(), "!", 1)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        Combined.apply()


def test_forward_runs_without_grad_and_inputs_still_say_that_they_require_it() -> None:
    class Look(Function):
        seen: Any = None

        @staticmethod
        def forward(ctx, x, y):
            inner = Combined.apply(x)
            Look.seen = (x.requires_grad, y.requires_grad, inner.requires_grad, ctx.needs_input_grad)
            return inner

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    Look.apply(leaf(), Variable("b"))
    assert Look.seen == (True, False, False, (True, False))


def test_the_engine_and_not_forward_says_what_requires_grad() -> None:
    class Claims(Function):
        @staticmethod
        def forward(ctx, x):
            return Variable(x.data, requires_grad=True)

        @staticmethod
        def backward(ctx, grad):
            return grad

    untracked = Claims.apply(Variable("a"))
    assert (untracked.requires_grad, untracked.grad_fn, untracked.is_leaf) == (False, None, True)
    with no_grad():
        assert Claims.apply(leaf()).requires_grad is False
        with enable_grad():
            assert Claims.apply(leaf()).grad_fn.name() == "ClaimsBackward"


def test_ctx_is_the_node_and_keeps_any_attribute() -> None:
    y = Combined.apply(leaf(), "?")
    assert (y.grad_fn.name(), y.grad_fn.suffix, y.is_leaf) == ("CombinedBackward", "?", False)


def test_outputs_are_numbered_by_place_and_what_is_no_variable_is_returned_as_it_is() -> None:
    class Mixed(Function):
        got: Any = None

        @staticmethod
        def forward(ctx, x):
            return Variable(x.data), "text", Variable("other"), None

        @staticmethod
        def backward(ctx, *grads):
            Mixed.got = grads
            return grads[2]

    x = leaf()
    first, text, third, nothing = Mixed.apply(x)
    assert (first.output_nr, text, third.output_nr, nothing) == (0, "text", 2, None)
    assert first.grad_fn is third.grad_fn
    third.backward(Variable("g"))
    assert [grad and grad.data for grad in Mixed.got] == [None, None, "g", None]
    assert x.grad.data == "g"


@pytest.mark.parametrize(("data", "zero"), [("a", ""), (2.5, 0), (["a", "b"], ["", ""]), ([1, 2], [0, 0])])
def test_materialized_gradients_say_nothing_in_the_kind_of_the_output(data, zero) -> None:
    class Two(Function):
        got: Any = None

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(True)
            return Variable("used"), Variable(data), 5

        @staticmethod
        def backward(ctx, *grads):
            Two.got = grads
            return

    Two.apply(leaf())[0].backward(Variable("g"))
    used, unused, number = Two.got
    assert (used.data, unused.data, number) == ("g", zero, None)


def test_an_input_that_forward_returns_is_a_new_variable() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(role="r")
    y = Same.apply(x)
    assert y is not x
    assert (y.data, y.role, y.grad_fn.name(), x.grad_fn) == ("a", "r", "SameBackward", None)
    with no_grad():
        z = Same.apply(x)
    assert (z.requires_grad, x.requires_grad) == (False, True)


# Differs: a list of outputs that holds tensors
def test_a_list_of_outputs_is_refused_where_it_would_lose_its_gradients() -> None:
    class Lists(Function):
        @staticmethod
        def forward(ctx, x):
            return [Variable(x.data)]

    with pytest.raises(TypeError, match="a list that holds Variables, which no gradient would reach; return them in a"):
        Lists.apply(leaf())


class Nested(Function):
    flags: Any = None

    @staticmethod
    def forward(ctx, messages, names):
        return Variable("out")

    @staticmethod
    def backward(ctx, grad):
        Nested.flags = ctx.needs_input_grad
        return [{"content": [grad, None]}, None], ({"a": grad},)


# Differs: Variables in lists are not followed
def test_variables_in_containers_are_tracked_with_one_slot_an_argument() -> None:
    v, w, a = leaf("v"), leaf("w"), leaf("a")
    out = Nested.apply([{"content": [v, w], "role": "user"}, "text"], ({"a": a, "b": 1},))
    assert out.grad_fn.needs_input_grad == (True, True)
    assert len(out.grad_fn.next_functions) == 3
    out.backward(Variable("g"))
    assert (v.grad.data, w.grad, a.grad.data) == ("g", None, "g")


def test_a_container_without_a_variable_that_needs_one_needs_no_gradient() -> None:
    out = Nested.apply([{"content": [Variable("v"), leaf("w")]}, "text"], ({"b": 1},))
    assert out.grad_fn.needs_input_grad == (True, False)


def test_gradients_of_a_container_must_have_its_structure() -> None:
    function = returning([Variable("g")])
    with pytest.raises(RuntimeError, match=r"returned a list at position 0, .* return None or a list of 2"):
        function.apply([leaf(), leaf()]).backward(Variable("g"))
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got str\)"):
        returning((["g", None],)).apply([leaf(), leaf()]).backward(Variable("g"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((None,), r"expected 2, got 1"),
        ((None, None, Variable("g")), r"expected 2, got 3"),
        (None, r"expected 2, got 1"),
        (("g", None), r"expected Variable or None \(got str\)"),
        ((1.5, None), r"expected Variable or None \(got float\)"),
    ],
)
def test_what_backward_returns_must_fit(value, message) -> None:
    with pytest.raises(RuntimeError, match=message):
        returning(value).apply(leaf(), leaf()).backward(Variable("g"))


class Gives(Function):
    """Give whatever gradient the arguments say."""

    @staticmethod
    def forward(ctx, x, *rest, gradients):
        ctx.gradients = gradients
        return Variable("q")

    @staticmethod
    def backward(ctx, grad_out):
        return tuple(ctx.gradients)


@pytest.mark.parametrize(
    ("data", "gradient", "message"),
    [
        (["a", "b"], ["1"], "got a list of 1 text, but the argument holds a list of 2 texts"),
        (["a", "b"], 1, "got a number, but the argument holds a list of 2 texts"),
        ("a", 1.5, "got a number, but the argument holds a text"),
        ("a", ["1"], "got a list of 1 text, but the argument holds a text"),
        (1, [1, 2, 3], "got a list of 3 numbers, but the argument holds a number"),
    ],
)
def test_a_gradient_must_be_able_to_be_of_its_argument(data, gradient, message) -> None:
    x, y = Variable(data, requires_grad=True), Variable("y", requires_grad=True)
    says = f"function GivesBackward returned an invalid gradient for `x`: {message}"
    with pytest.raises(RuntimeError, match=says):
        Gives.apply(x, gradients=[Variable(gradient), None]).backward(Variable("f"))
    says = f"function GivesBackward returned an invalid gradient for argument 1: {message}"
    with pytest.raises(RuntimeError, match=says):
        Gives.apply(y, x, gradients=[Variable("good"), Variable(gradient), None]).backward(Variable("f"))
    assert x.grad is None
    assert y.grad is None


@pytest.mark.parametrize(
    ("data", "gradient"), [(["a", "b"], "both"), (1.5, "more"), (1.5, 2), ([1, 2], ["up", "down"]), ([], [])]
)
def test_words_may_be_of_numbers_and_one_text_of_each_place(data, gradient) -> None:
    x = Variable(data, requires_grad=True)
    Gives.apply(x, gradients=[Variable(gradient), None]).backward(Variable("f"))
    assert x.grad.data == gradient


@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_forward_that_is_async_is_refused(requires_grad) -> None:
    class Later(Function):
        @staticmethod
        async def forward(ctx, x):
            return Variable(x.data)

    with pytest.raises(TypeError, match="forward of Later returned a coroutine, which nobody awaits"):
        Later.apply(Variable("a", requires_grad=requires_grad))


def test_trailing_nones_are_allowed() -> None:
    x = leaf()
    returning((Variable("g"), None, None)).apply(x).backward(Variable("g"))
    assert x.grad.data == "g"


def test_a_gradient_for_what_is_no_variable_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"a gradient different than None at position 1, but the corresponding"):
        returning((None, Variable("g"))).apply(leaf(), "text").backward(Variable("g"))


def test_a_function_is_not_instantiated_and_must_be_overridden() -> None:
    with pytest.raises(RuntimeError, match=r"call Combined\.apply"):
        Combined()
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        type("Empty", (Function,), {}).apply(leaf())
    half = type("Half", (Function,), {"forward": staticmethod(lambda ctx, x: Variable("out"))})
    with pytest.raises(NotImplementedError, match="You must implement the backward function"):
        half.apply(leaf()).backward(Variable("g"))


class Saves(Function):
    @staticmethod
    def forward(ctx, x, extra=None):
        out = Variable(x.data + "!", role="out")
        ctx.save_for_backward(x, "any text", out, [x, {"k": extra}])
        return out

    @staticmethod
    def backward(ctx, grad):
        x, text, out, nested = ctx.saved_variables
        return Variable(f"{grad.data}: {x.data} {text} {out.data} {nested[0].data}"), None


# Differs: `save_for_backward` takes only tensors
def test_anything_may_be_saved() -> None:
    x = leaf()
    y = Saves.apply(x)
    y.backward(Variable("g"))
    assert x.grad.data == "g: a any text a! a"


def test_a_saved_output_is_another_variable_at_the_same_place_of_the_graph() -> None:
    y = Saves.apply(leaf())
    saved = y.grad_fn.saved_variables[2]
    assert saved is not y
    assert (saved.data, saved.role, saved.grad_fn, saved.output_nr) == (y.data, y.role, y.grad_fn, y.output_nr)


def test_a_saved_output_makes_no_cycle() -> None:
    gc.disable()
    try:
        y = Saves.apply(leaf())
        node, output = weakref.ref(y.grad_fn), weakref.ref(y)
        del y
        assert (node(), output()) == (None, None)
    finally:
        gc.enable()


def assign(variable: Variable) -> None:
    variable.data = "other"


def assign_in_the_list(variable: Variable) -> None:
    variable.data[0] = "other"


@pytest.mark.parametrize("place", ["input", "output", "nested"])
def test_a_saved_variable_that_was_assigned_since_is_an_error_before_any_call(place) -> None:
    x, extra = leaf(), leaf()
    y = Saves.apply(x, extra)
    assign({"input": x, "output": y, "nested": extra}[place])
    head = passing(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        head.apply(y)[0].backward(Variable("g"))
    assert (head.got, x.grad) == (None, None)


def test_a_list_that_was_written_into_since_is_an_error() -> None:
    class SavesList(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return Variable("out")

    x = leaf(["a", "b"])
    y = SavesList.apply(x)
    assign_in_the_list(x)
    written = r"the list in \.data of Variable.* was written into; it was \['a', 'b'\]\. SavesListBackward saved it"
    with pytest.raises(RuntimeError, match=f"has been modified by an inplace operation: {written}"):
        y.backward(Variable("g"))


def test_saved_variables_are_freed_by_backward_and_kept_on_request() -> None:
    x = leaf()
    y = Saves.apply(x)
    y.backward(Variable("g"), retain_graph=True)
    y.backward(Variable("g"))
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward(Variable("g"))
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        _ = y.grad_fn.saved_variables


def test_a_freed_graph_is_refused_before_any_call() -> None:
    x, head = leaf(), passing(1)
    y = Saves.apply(x)
    (top,) = head.apply(y)
    y.backward(Variable("g"))
    with pytest.raises(RuntimeError, match="a second time"):
        top.backward(Variable("g"))
    assert head.got is None


def test_an_argument_returned_as_its_own_gradient_is_copied() -> None:
    class Itself(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return Variable("out")

        @staticmethod
        def backward(ctx, grad):
            return ctx.saved_variables[0]

    x = leaf()
    Itself.apply(x).backward(Variable("g"))
    assert (x.grad.data, x.grad.requires_grad) == ("a", False)
    gone = weakref.ref(x)
    gc.disable()
    try:
        del x
        assert gone() is None
    finally:
        gc.enable()


def test_several_roots_and_a_root_given_twice() -> None:
    x = leaf(1.0)
    y, z = x + 1, x + 2
    backward([y, z, y])
    assert x.grad.data == 3
