"""Variable: data, version, leaf or not, gradients and their parts, hooks, copies."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import pytest

from gradspec.text import Function, Variable, grad
from gradspec.text._graph._merge import distinct


def leaf(data: Any = "a", role: str = "") -> Variable:
    return Variable(data, role=role, requires_grad=True)


class Answer(Function):
    """One backward writes `feedback on <role>: <gradient>` for each argument."""

    @staticmethod
    def forward(ctx, *xs):
        ctx.save_for_backward(*xs)
        return Variable(" ".join(str(x.data) for x in xs), role="answer")

    @staticmethod
    def backward(ctx, g):
        return tuple(Variable(f"on {x.role}: {g.data}", role=f"feedback to {x.role}") for x in ctx.saved_variables)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("text", "text"),
        (1, 1),
        (1.5, 1.5),
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        ([1, 2], [1, 2]),
        ([1, 2.5], [1.0, 2.5]),
        ([], []),
    ],
)
def test_data_is_a_text_a_number_or_a_list(given, kept) -> None:
    data = Variable(given).data
    assert (data, type(data)) == (kept, type(kept))


@pytest.mark.parametrize("given", [None, {"a": 1}, ["a", 1], [["a"]], b"a", [None]])
def test_other_data_is_refused(given) -> None:
    with pytest.raises(TypeError, match="a Variable"):
        Variable(given)
    with pytest.raises(TypeError, match="a Variable"):
        Variable("a").data = given


def test_the_list_is_the_variables_own() -> None:
    given = ["a", "b"]
    variable = Variable(given)
    given[0] = "other"
    assert variable.data == ["a", "b"]


def test_assignment_moves_the_version() -> None:
    variable = Variable("a")
    variable.data = "b"
    variable.data = "b"
    assert (variable.data, variable.version) == ("b", 2)


def test_is_leaf_and_requires_grad() -> None:
    x = leaf()
    y = x + "b"
    assert (x.is_leaf, y.is_leaf, y.requires_grad, y.output_nr) == (True, False, True, 0)
    x.requires_grad = False
    assert (x + "b").is_leaf
    assert x.requires_grad_() is x


@pytest.mark.parametrize("flag", [True, False])
def test_only_a_leafs_requires_grad_can_be_assigned(flag) -> None:
    y = leaf() + "b"
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = flag


def test_detach_gives_a_leaf_that_is_independent() -> None:
    y = leaf(role="r") + "b"
    z = y.detach()
    z.data = "other"
    assert (z.requires_grad, z.grad_fn, z.role, y.data, y.version) == (False, None, "r", "ab", 0)


def test_the_grad_of_a_variable_that_is_no_leaf_is_none_and_warns() -> None:
    y = leaf() + "b"
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None


def test_retain_grad() -> None:
    x = leaf()
    y = x + "b"
    y.retain_grad()
    (y + "c").backward(Variable("g"))
    assert (y.retains_grad, y.grad.data, x.grad.data) == (True, "g", "g")
    x.retain_grad()
    assert x.retains_grad is False
    with pytest.raises(RuntimeError, match="can't retain_grad on Variable that has requires_grad=False"):
        Variable("a").retain_grad()


def test_grad_takes_a_variable_or_none() -> None:
    x = leaf()
    with pytest.raises(TypeError, match="expected to be a Variable or None but got grad of type str"):
        x.grad = "text"
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    x.grad = Variable("g")
    x.grad = None
    assert x.grad is None


def test_a_leaf_used_by_two_calls_gets_one_gradient_with_two_parts() -> None:
    x = leaf(role="prompt")
    first, second = Answer.apply(x), Answer.apply(x)
    Answer.apply(first, second).backward(Variable("wrong", role="loss"))
    assert x.grad.data == "on prompt: on answer: wrong\non prompt: on answer: wrong"
    assert [(part.role, part.source, part.outputs) for part in x.grad.parts] == [
        ("feedback to prompt", "AnswerBackward", ("answer",)),
    ] * 2


def test_the_same_gradient_by_two_paths_counts_once() -> None:
    x = leaf()
    (x + x).backward(Variable("g", role="loss"))
    assert x.grad.data == "g"
    (part,) = x.grad.parts
    assert (part.data, part.role, part.source, part.outputs) == ("g", "loss", "", ())


def test_equal_texts_of_two_sources_both_stand() -> None:
    x = leaf(role="p")
    (Answer.apply(x) + Answer.apply(x)).backward(Variable("g"))
    assert x.grad.data == "on p: g\non p: g"


def test_numbers_are_added_with_multiplicity() -> None:
    x = leaf(1.0)
    (x + x + x).backward(Variable(2.0))
    assert x.grad.data == 6.0


def test_stacked_diamonds_do_not_double_the_text() -> None:
    x = leaf()
    y = x
    for _ in range(64):
        y = y + y
        y.data = "short"
    y.backward(Variable("g"))
    assert x.grad.data == "g"


# Differs: a second pass adds to the `.grad` object
def test_gradients_accumulate_over_backward_passes_and_none_starts_anew() -> None:
    x = leaf()
    (x + "b").backward(Variable("first"))
    before = x.grad
    (x + "b").backward(Variable("second"))
    assert (x.grad.data, before.data) == ("first\nsecond", "first")
    x.grad = None
    (x + "b").backward(Variable("third"))
    assert x.grad.data == "third"


def test_an_empty_text_says_nothing() -> None:
    x = leaf()
    (x + "b").backward()
    assert x.grad.data == ""
    (x + "b").backward(Variable("g"))
    assert x.grad.data == "g"


def test_lists_are_merged_place_by_place() -> None:
    x = leaf(["a", "b"])
    (x + Variable(["c", "d"])).backward(Variable(["first", ""]))
    (x + Variable(["c", "d"])).backward(Variable(["", "second"]))
    (x + Variable(["c", "d"])).backward(Variable(["third", "fourth"]))
    assert x.grad.data == ["first\nthird", "second\nfourth"]
    n = leaf([1, 2])
    (n + n).backward(Variable([1, 10]))
    assert n.grad.data == [2, 20]


def test_gradients_of_two_kinds_are_refused_and_nothing_is_kept() -> None:
    x = leaf(["a", "b"])
    (x + Variable(["c", "d"])).backward(Variable(["g", "h"]))
    with pytest.raises(RuntimeError, match="two gradients of one Variable cannot be merged"):
        (x + Variable(["c", "d"])).backward(Variable("g"))
    assert x.grad.data == ["g", "h"]


@pytest.mark.parametrize(
    ("data", "gradient", "message"),
    [
        (["a", "b"], ["g"], "element 0 of gradients is a list of 1 text; the Variable holds a list of 2 texts"),
        (["a", "b"], 1, "element 0 of gradients is a number; the Variable holds a list of 2 texts"),
        ("a", 1, "element 0 of gradients is a number; the Variable holds a text"),
        (1.0, [1, 2], "element 0 of gradients is a list of 2 numbers; the Variable holds a number"),
    ],
)
def test_a_pass_begins_with_a_gradient_that_fits_its_variable(data, gradient, message) -> None:
    x = leaf(data)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        x.backward(Variable(gradient))
    assert x.grad is None


def test_gradients_are_opened_without_recursion() -> None:
    x = leaf()
    for i in range(3000):
        (x + "b").backward(Variable(str(i)))
    assert len(distinct(x.grad)) == 3000
    assert x.grad.data == "\n".join(map(str, range(3000)))


def test_hooks_see_and_replace_the_gradient_in_their_order() -> None:
    x = leaf()
    y = x + "b"
    seen = []
    y.register_hook(lambda g: seen.append(("y", g.data)))
    y.register_hook(lambda g: Variable(g.data + "!"))
    handle = x.register_hook(lambda g: seen.append(("x", g.data)))
    y.backward(Variable("g"), retain_graph=True)
    handle.remove()
    handle.remove()
    y.backward(Variable("h"))
    assert seen == [("y", "g"), ("x", "g!"), ("y", "h")]
    assert x.grad.data == "g!\nh!"


def test_a_hook_on_a_leaf_works_before_and_after_the_leaf_was_used() -> None:
    x = leaf()
    seen = []
    x.register_hook(lambda g: seen.append("before"))
    y = x + "b"
    x.register_hook(lambda g: seen.append("after"))
    y.backward(Variable("g"))
    assert seen == ["before", "after"]


def test_a_first_hook_on_a_leaf_that_was_used_already() -> None:
    x = leaf()
    y = x + "b"
    seen = []
    x.register_hook(lambda g: seen.append(g.data))
    y.backward(Variable("g"))
    assert seen == ["g"]


def test_a_hook_must_return_a_variable() -> None:
    x = leaf()
    x.register_hook(lambda g: "text")
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'str'"):
        (x + "b").backward(Variable("g"))
    with pytest.raises(RuntimeError, match="cannot register a hook on a variable that doesn't require gradient"):
        Variable("a").register_hook(print)


def test_hooks_of_a_node() -> None:
    x = leaf()
    y = Answer.apply(x, Variable("b"))
    seen = []
    y.grad_fn.register_prehook(lambda outputs: (Variable(outputs[0].data + "!"),))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((len(inputs), outputs[0].data)))
    y.grad_fn.register_hook(lambda inputs, outputs: (Variable("replaced"), None))
    y.backward(Variable("g"))
    assert (seen, x.grad.data) == ([(2, "g!")], "replaced")


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (Variable("g"), TypeError, "expected tuple, but hook returned 'Variable'"),
        ((None, None), RuntimeError, r"incorrect number of values \(got 2, but expected 1\)"),
    ],
)
def test_a_hook_of_a_node_must_return_as_many(value, error, message) -> None:
    y = Answer.apply(leaf())
    y.grad_fn.register_hook(lambda inputs, outputs: value)
    with pytest.raises(error, match=message):
        y.backward(Variable("g"))


def test_a_post_accumulate_hook_sees_the_filled_grad() -> None:
    x = leaf()
    seen = []
    x.register_post_accumulate_grad_hook(lambda v: seen.append((v is x, v.grad.data)))
    (x + "b").backward(Variable("g"))
    assert seen == [(True, "g")]
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf"):
        (x + "b").register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="cannot register a hook"):
        Variable("a").register_post_accumulate_grad_hook(print)


def test_deepcopy_copies_a_leaf_with_its_grad_and_refuses_others() -> None:
    x = leaf(["a"], role="r")
    (x + Variable(["b"])).backward(Variable(["g"]))
    y = copy.deepcopy(x)
    assert (y.data, y.role, y.requires_grad, y.grad.data) == (["a"], "r", True, ["g"])
    assert y.grad is not x.grad
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x + Variable(["b"]))


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        (Variable("a"), "Variable('a')"),
        (Variable(1.5, role="score"), "Variable(1.5, role='score')"),
        (Variable("a", requires_grad=True), "Variable('a', requires_grad=True)"),
        (leaf("a", role="r") + "b", "Variable('ab', role='r', grad_fn=<AddBackward>)"),
    ],
)
def test_repr(variable, text) -> None:
    assert repr(variable) == text
    assert str(variable) == str(variable.data)


def test_addition_of_texts_numbers_and_lists() -> None:
    assert ("a" + leaf("b") + "c").data == "abc"
    assert (leaf(1) + 2.5).data == 3.5
    assert (leaf([1, 2]) + leaf([10, 20])).data == [11, 22]
    for wrong in (lambda: leaf("a") + 1, lambda: leaf(["a"]) + "b", lambda: leaf(["a"]) + Variable(["b", "c"])):
        with pytest.raises(TypeError, match="cannot add"):
            wrong()


def test_gradient_data_can_be_assigned() -> None:
    x = leaf()
    (gradient,) = grad(x + "b", x, Variable("g"))
    gradient.data = "other"
    assert gradient.parts[0].data == "other"


def test_pickle_keeps_a_leaf_without_its_gradient_and_its_hooks() -> None:
    x = Variable("a", role="prompt", requires_grad=True)
    x.register_hook(lambda gradient: gradient)
    (x + "b").backward(Variable("shorter"))
    y = pickle.loads(pickle.dumps(x))
    assert (y.data, y.role, y.requires_grad, y.is_leaf) == ("a", "prompt", True, True)
    assert y.grad is None
    assert copy.copy(x).grad is None
    assert x.grad is not None
    (y + "b").backward(Variable("longer"))
    assert (y.grad.data, x.grad.data) == ("longer", "shorter")


def test_pickle_keeps_the_parts_of_a_gradient() -> None:
    x = Variable("a", requires_grad=True)
    (x + x).backward(Variable("shorter"))
    (x + "b").backward(Variable("kinder"))
    assert [*map(str, pickle.loads(pickle.dumps(x.grad)).parts)] == [*map(str, x.grad.parts)]
    assert len(x.grad.parts) == 2
