"""The engine: order, pruning, all or nothing, depth, and no leaks."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from gradspec.text import Function, Variable, backward, get_gradient_edge, grad


def leaf(data: Any = "a", role: str = "") -> Variable:
    return Variable(data, role=role, requires_grad=True)


class Call(Function):
    """Join the texts of its Variables; backward logs its name and passes on `name(gradient)`, or fails."""

    log: list[Any]

    @staticmethod
    def forward(ctx, name, *xs):
        ctx.name = name
        ctx.save_for_backward(*xs)
        return Variable("".join(x.data for x in xs))

    @staticmethod
    def backward(ctx, g):
        Call.log.append((ctx.name, ctx.needs_input_grad[1:]))
        if ctx.name == "fails":
            raise KeyError("of the user's")
        if ctx.name == "interrupted":
            raise KeyboardInterrupt
        if ctx.name == "silent":
            return (None,) * len(ctx.needs_input_grad)
        ctx.saved_variables  # noqa: B018 -- so that a freed graph is noticed
        return None, *(Variable(f"{ctx.name}({g.data})") if needed else None for needed in ctx.needs_input_grad[1:])


class Waiting(Call):
    io_bound = True


@pytest.fixture(autouse=True)
def _new_log() -> None:
    Call.log = []


def names() -> str:
    return " ".join(name for name, _ in Call.log)


def test_a_diamond_runs_the_latest_call_first_and_each_once() -> None:
    x = leaf()
    a = Call.apply("a", x)
    b, c = Call.apply("b", a), Call.apply("c", a)
    Call.apply("d", b, c).backward(Variable("g"))
    assert names() == "d c b a"
    assert x.grad.data == "a(c(d(g))\nb(d(g)))"


def test_gradients_are_merged_by_the_consumer_latest_first_then_by_argument() -> None:
    x = leaf()
    first = Call.apply("first", x)
    Call.apply("top", x, Call.apply("second", first, x), x).backward(Variable("g"))
    assert x.grad.data == "top(g)\ntop(g)\nsecond(top(g))\nfirst(second(top(g)))"


def test_inputs_prune_calls_narrow_flags_and_touch_no_other_grad() -> None:
    x, y = leaf(), leaf()
    mine, other = Call.apply("mine", x), Call.apply("other", y)
    top = Call.apply("top", mine, other)
    top.backward(Variable("g"), retain_graph=True, inputs=[x])
    assert Call.log == [("top", (True, False)), ("mine", (True,))]
    assert (x.grad.data, y.grad) == ("mine(top(g))", None)
    Call.log.clear()
    top.backward(Variable("g"))
    assert Call.log[0] == ("top", (True, True))


def test_an_inner_variable_as_input_keeps_its_grad_and_its_own_call_is_not_made() -> None:
    x = leaf()
    inner = Call.apply("inner", x)
    Call.apply("top", inner).backward(Variable("g"), inputs=inner)
    assert (names(), inner.grad.data, inner.retains_grad, x.grad) == ("top", "top(g)", True, None)


def test_inputs_must_be_variables_that_require_grad() -> None:
    y = Call.apply("a", leaf())
    with pytest.raises(RuntimeError, match="`inputs` argument to `backward\\(\\)` cannot be empty"):
        y.backward(Variable("g"), inputs=[])
    with pytest.raises(RuntimeError, match="element 1 of inputs does not require grad"):
        y.backward(Variable("g"), inputs=[y, Variable("b")])
    with pytest.raises(TypeError, match="inputs holds a str"):
        y.backward(Variable("g"), inputs=["b"])


def test_grad_returns_and_leaves_the_leaves_alone() -> None:
    x, y, unused = leaf(), leaf(), leaf()
    inner = Call.apply("inner", x)
    top = Call.apply("top", inner, y)
    found = grad(top, [x, inner, y], Variable("g"), retain_graph=True)
    assert [g.data for g in found] == ["inner(top(g))", "top(g)", "top(g)"]
    assert (x.grad, y.grad) == (None, None)
    Call.log.clear()
    with pytest.raises(RuntimeError, match=r"at index 1 appears to not have been used .* Set allow_unused=True"):
        grad(top, [x, unused], Variable("g"))
    assert Call.log == []
    assert grad(top, [unused], Variable("g"), retain_graph=True, allow_unused=True) == (None,)
    (zero,) = grad(top, unused, Variable("g"), materialize_grads=True)
    assert zero.data == ""
    with pytest.raises(ValueError, match="allow_unused"):
        grad(top, unused, allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="One of the differentiated Variables does not require grad"):
        grad(top, Variable("b"))


def test_what_has_no_feedback_is_not_called_nor_what_stands_below_it() -> None:
    x, y = leaf(), leaf()
    below = Call.apply("below", Call.apply("silent", x))
    Call.apply("top", Call.apply("silent", below), y).backward(Variable("g"))
    assert (names(), x.grad, y.grad.data) == ("top silent", None, "top(g)")


def test_what_one_path_is_silent_about_another_may_reach() -> None:
    x = leaf()
    shared = Call.apply("shared", x)
    Call.apply("top", Call.apply("silent", shared), shared).backward(Variable("g"))
    assert (names(), x.grad.data) == ("top silent shared", "shared(top(g))")


@pytest.mark.parametrize(("name", "error"), [("fails", KeyError), ("interrupted", KeyboardInterrupt)])
def test_after_an_exception_every_grad_and_the_graph_are_as_they_were(name, error) -> None:
    x, y = leaf(), leaf()
    before = x.grad = Variable("before")
    kept = Call.apply("kept", y)
    kept.retain_grad()
    late = Call.apply("late", x, kept)
    top = Call.apply("top", Call.apply(name, x), late)
    with pytest.raises(error):
        top.backward(Variable("g"))
    assert (x.grad, y.grad, kept.grad, names().split()[-1]) == (before, None, None, name)
    late.backward(Variable("g"))
    assert (x.grad.data, y.grad.data) == ("before\nlate(g)", "kept(late(g))")


def test_a_failing_hook_on_the_filled_grad_takes_every_grad_back() -> None:
    x, y = leaf(), leaf()

    def fail(variable: Variable) -> None:
        raise KeyError("of the hook")

    y.register_post_accumulate_grad_hook(fail)
    top = Call.apply("top", x, y)
    with pytest.raises(KeyError):
        top.backward(Variable("g"))
    assert (x.grad, y.grad) == (None, None)
    assert len(top.grad_fn.saved_variables) == 2


# Differs: `create_graph=True`
# Differs: `backward([y], [g, h])`
def test_seeds() -> None:
    x = leaf()
    top = Call.apply("top", x)
    backward([top], [Variable("g")], retain_graph=True)
    with pytest.raises(RuntimeError, match="got 1 variables and 2 gradients"):
        backward(top, [Variable("g"), Variable("h")])
    with pytest.raises(TypeError, match="gradients can be either Variables or None, but got str"):
        backward([top], ["g"])
    with pytest.raises(RuntimeError, match="element 1 of variables does not require grad and does not have a grad_fn"):
        backward([top, Variable("b")])
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        backward(leaf(["a"]))
    with pytest.raises(NotImplementedError, match="create_graph=True is not implemented"):
        top.backward(Variable("g"), create_graph=True)


def test_a_leaf_may_be_a_root() -> None:
    x, n = leaf(), leaf(3)
    x.backward(Variable("g"))
    n.backward()
    assert (x.grad.data, n.grad.data) == ("g", 1)


def test_edges() -> None:
    x = leaf()
    y = Call.apply("a", x, Variable("b"), x)
    nodes = [edge.node for edge in y.grad_fn.next_functions]
    assert nodes[1] is None
    assert nodes[0] is nodes[2] is get_gradient_edge(x).node
    assert (nodes[0].name(), nodes[0].variable is x) == ("AccumulateGrad", True)
    assert get_gradient_edge(y) == (y.grad_fn, 0)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        get_gradient_edge(Variable("b"))


def test_a_backward_inside_a_backward() -> None:
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            return Variable(x.data)

        @staticmethod
        def backward(ctx, g):
            from gradspec.text import enable_grad

            with enable_grad():
                y = leaf("y")
                Call.apply("inner", y).backward(g)
            return y.grad

    x = leaf()
    Inner.apply(x).backward(Variable("g"), inputs=[x])
    assert (x.grad.data, Call.log) == ("inner(g)", [("inner", (True,))])


@pytest.mark.slow
def test_a_chain_of_100_000_calls() -> None:
    class Pass(Function):
        @staticmethod
        def forward(ctx, x):
            return Variable("short")

        @staticmethod
        def backward(ctx, g):
            return g

    x = y = leaf()
    for _ in range(100_000):
        y = Pass.apply(y)
    y.backward(Variable("g"))
    assert x.grad.data == "g"


def test_a_thousand_additions_give_text_of_linear_length() -> None:
    lengths = []
    for n in (500, 1000):
        x = y = leaf("a", role="text")
        for _ in range(n):
            y = y + Call.apply("call", x)
        y.backward(Variable("g"))
        lengths.append(len(x.grad.data))
    assert lengths == [500 * len("call(g)\n") + 1, 1000 * len("call(g)\n") + 1]


def test_nothing_is_left_over_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf()
        a = Call.apply("a", x)
        a.retain_grad()
        a.register_hook(lambda g: None)
        top = Call.apply("top", a, Call.apply("b", a, x)) + "!"
        top.backward(Variable("g"), retain_graph=True, max_concurrency=4)
        top.backward(Variable("h"))
        grad(Call.apply("c", x), x, Variable("g"))
        seen = [weakref.ref(thing) for thing in (x, a, a.grad, a.grad_fn, top, top.grad_fn, x.grad)]
        Call.log.clear()
        del x, a, top
        assert [ref() for ref in seen] == [None] * len(seen)
    finally:
        gc.enable()


@pytest.mark.parametrize("limit", [1, 4])
@pytest.mark.parametrize("waits", [False, True])
def test_a_pass_that_failed_leaves_nothing_over_either(limit, waits) -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf()
        top = Call.apply("top", (Waiting if waits else Call).apply("fails", x))
        seen = [weakref.ref(thing) for thing in (x, top, top.grad_fn)]
        try:
            top.backward(Variable("g"), retain_graph=True, max_concurrency=limit)
        except KeyError:
            Call.log.append("raised")
        assert Call.log[-1] == "raised"
        del x, top
        assert [ref() for ref in seen] == [None] * len(seen)
    finally:
        gc.enable()
