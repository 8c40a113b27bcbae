"""Pictures of a graph: every call and leaf once, feedback included, and nothing that Mermaid would read."""

from __future__ import annotations

import re

import pytest

from gradspec.text import Function, Variable, mermaid, tree


class Ask(Function):
    @staticmethod
    def forward(ctx, *xs):
        return Variable("answer", role="answer")

    @staticmethod
    def backward(ctx, grad):
        return tuple(Variable(f"re {grad.data}") for _ in ctx.needs_input_grad)


def graph() -> Variable:
    x = Variable("x", role="prompt", requires_grad=True)
    inner = Ask.apply(x, Variable("no gradient"))
    inner.retain_grad()
    top = Ask.apply(inner, x, inner)
    top.backward(Variable("g"))
    return top


def test_a_tree_shows_calls_roles_data_and_feedback_each_once() -> None:
    assert tree(graph()).splitlines() == [
        "AskBackward: answer",
        "  AskBackward: answer",
        "    prompt 'x' <- 're g\\nre re g\\nre g'",
        "  prompt (see above)",
        "  AskBackward: answer (see above)",
    ]


def test_an_inner_variable_that_is_alive_and_retains_its_gradient_is_shown_with_it() -> None:
    x = Variable("x", role="prompt", requires_grad=True)
    inner = Ask.apply(x)
    inner.retain_grad()
    Ask.apply(inner).backward(Variable("g"))
    assert tree(inner).splitlines()[0] == "AskBackward: answer; 'answer' <- 're g'"


def test_a_leaf_alone() -> None:
    assert tree(Variable(3)) == "leaf 3"


def test_width() -> None:
    x = Variable("word " * 100, role="prompt", requires_grad=True)
    assert tree(x, width=20) == "prompt 'word word word w..."
    assert ("word " * 100) in tree(x, width=None)


def test_mermaid_has_a_box_for_each_node_and_an_arrow_for_each_edge() -> None:
    lines = mermaid(graph()).splitlines()
    assert lines[0] == "flowchart TD"
    assert sorted(line.strip() for line in lines if "-->" in line) == [
        "n1 --> n0",
        "n1 --> n0",
        "n2 --> n0",
        "n2 --> n1",
    ]
    assert len(lines) == 1 + 3 + 4


@pytest.mark.parametrize("text", ['"]; click n0', "<script>", "end\n%% x", "#quot;", "{`}|\\", "a-->b", "ü"])
def test_no_sign_of_mermaids_survives(text) -> None:
    box = mermaid(Variable(text, role=text, requires_grad=True)).splitlines()[1]
    inside = re.fullmatch(r'  n0\("(.*)"\)', box)[1]
    assert re.fullmatch(r"(?:[\w .,:!?()+\-=]|#\d+;)*", inside)
    shown = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), inside)
    assert shown == f"{text} {text!r}"


def test_a_long_chain_is_drawn_without_recursion() -> None:
    x = Variable("x", requires_grad=True)
    for _ in range(5_000):
        x = Ask.apply(x)
    assert mermaid(x).count("-->") == 5_000
