"""Specs of the operations that put texts together and take them apart."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from gradspec.spec import Argument, Misuse, TextCase, TextMaker, TextSpec
from gradspec.text._graph._add import add
from gradspec.text.ops._join import join, sum  # noqa: A004 -- it does what the built-in one does
from gradspec.text.ops._split import split
from gradspec.text.ops._template import fill


def _add(x: Any, y: Any) -> Any:
    return [a + b for a, b in zip(x, y, strict=True)] if isinstance(x, list) else x + y


def _add_cases(make: TextMaker) -> Iterator[TextCase]:
    texts = (make("Answer. ", role="prompt"), make("Be short.", role="style"))
    said = {"x": "too long", "y": "too long"}
    yield TextCase(name="two texts", args=texts, feedback=("too long",), says=said)
    yield TextCase(
        name="a text and data", args=("Well: ", make("four")), feedback=("too long",), says={"y": "too long"}
    )
    numbers = (make(1.5, role="score"), make(2, role="penalty"))
    yield TextCase(name="two numbers", args=numbers, feedback=(3,), says={"x": 3, "y": 3})
    lists = (make(["a", "b"]), make(["c", "d"]))
    places = {"x": ["", "better"], "y": ["", "better"]}
    yield TextCase(name="two lists", args=lists, feedback=(["", "better"],), says=places)
    same = make("again ")
    yield TextCase(name="a text and itself", args=(same, same), feedback=("once",), says={"x": "once"})


def _add_misuses(make: TextMaker) -> Iterator[Misuse]:
    mixed = TextCase(name="a text and a number", args=(make("four"), 4))
    yield Misuse(case=mixed, error=TypeError, match="both must be texts, or numbers, or lists of one length")
    uneven = TextCase(name="lists of different lengths", args=(make(["a"]), make(["b", "c"])))
    yield Misuse(case=uneven, error=TypeError, match="lists of one length")


def _join(variables: list[Any], separator: str = "") -> Any:
    numbers = all(isinstance(value, int | float) for value in variables)
    return builtins.sum(variables) if numbers else separator.join(variables)


def _sum(variables: list[Any]) -> Any:
    return _join(variables, "\n")


def _join_cases(make: TextMaker) -> Iterator[TextCase]:
    texts = [make("Think.", role="prompt"), "Then", make("answer.", role="task")]
    says = {"variables[0]": "vague", "variables[2]": "vague"}
    yield TextCase(name="texts and data", args=(texts, " "), feedback=("vague",), says=says)
    yield TextCase(name="one text", args=([make("alone")],), feedback=("vague",), says={"variables[0]": "vague"})


def _join_misuses(make: TextMaker) -> Iterator[Misuse]:
    mixed = TextCase(name="a text and a number", args=([make("four"), 4],))
    yield Misuse(case=mixed, error=TypeError, match="only texts or only numbers can be put together")


def _sum_cases(make: TextMaker) -> Iterator[TextCase]:
    losses = [make("Too long.", role="loss"), make("Too loud.", role="loss")]
    yield TextCase(name="texts", args=(losses,), feedback=("see to it",), says={"variables[1]": "see to it"})
    yield TextCase(name="numbers", args=([make(1), make(2.5)],), says={"variables[0]": 1, "variables[1]": 1})


def _split(x: Any, separator: str | None = None, maxsplit: int = -1) -> tuple[str, ...]:
    return tuple(x.split(separator, maxsplit))


def _split_cases(make: TextMaker) -> Iterator[TextCase]:
    colours = (make("red, green, blue", role="colours"), ", ")
    one = {"x": "Part 2 of 3: too bright"}
    yield TextCase(name="one piece judged", args=colours, feedback=(None, "too bright", None), says=one)
    both = {"x": "Part 1 of 2: dull\nPart 2 of 2: loud"}
    limited = {"maxsplit": 1}
    pieces = (make("red green blue", role="colours"),)
    yield TextCase(name="at most one cut", args=pieces, kwargs=limited, feedback=("dull", "loud"), says=both)


def _split_misuses(make: TextMaker) -> Iterator[Misuse]:
    yield Misuse(case=TextCase(name="a number", args=(make(4),)), error=TypeError, match="only a text can be split")
    nothing = TextCase(name="no separator", args=(make("red"), ""))
    yield Misuse(case=nothing, error=ValueError, match="separator is a text that is not empty")


def _fill(template: Any, **values: Any) -> Any:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", str(value))
    return template


def _fill_cases(make: TextMaker) -> Iterator[TextCase]:
    template = make('Answer as {"a": 1}: {question}', role="template")
    question = make("What is {x}?", role="question")
    says = {"template": "unclear", "values['question']": "unclear"}
    yield TextCase(
        name="braces in the data", args=(template,), kwargs={"question": question}, feedback=("unclear",), says=says
    )
    mixed = {"question": make("2 + 2?"), "n": 3}
    yield TextCase(name="a plain template", args=("{n} times: {question}",), kwargs=mixed)


def _fill_misuses(make: TextMaker) -> Iterator[Misuse]:
    nowhere = TextCase(name="no such place", args=(make("Answer."),), kwargs={"question": "2 + 2?"})
    yield Misuse(case=nowhere, error=ValueError, match="the template has no place for question")
    nothing = TextCase(name="a value is None", args=(make("{question}"),), kwargs={"question": None})
    yield Misuse(case=nothing, error=TypeError, match="the place {question} of a template takes a text or a number")


_SEPARATOR = "What is between two of them."
ADD = TextSpec(
    name="text_add",
    function=add,
    primal=_add,
    cases=_add_cases,
    raises=_add_misuses,
    wrt=("x", "y"),
    arguments=(
        Argument(name="x", type="Variable | str | float", gradient=True, text="A text, a number, or a list of either."),
        Argument(name="y", type="Variable | str | float", gradient=True, text="Likewise; one of them is a Variable."),
    ),
    returns="The result; its role names the roles of both.",
    documented=(add,),
)
JOIN = TextSpec(
    name="text_join",
    function=join,
    primal=_join,
    cases=_join_cases,
    raises=_join_misuses,
    wrt=("variables",),
    arguments=(
        Argument(name="variables", type="Iterable[Variable | str]", gradient=True, text="The texts, in their order."),
        Argument(name="separator", type="str", text=_SEPARATOR),
    ),
    returns="One text.",
    documented=(join,),
)
SUM = TextSpec(
    name="text_sum",
    function=sum,
    primal=_sum,
    cases=_sum_cases,
    raises=_join_misuses,
    wrt=("variables",),
    arguments=(
        Argument(name="variables", type="Iterable[Variable]", gradient=True, text="All texts, or all numbers."),
    ),
    returns="One text, or one number.",
    documented=(sum,),
)
SPLIT = TextSpec(
    name="text_split",
    function=split,
    primal=_split,
    cases=_split_cases,
    raises=_split_misuses,
    wrt=("x",),
    arguments=(
        Argument(name="x", type="Variable", gradient=True, text="The text."),
        Argument(name="separator", type="str | None", text="Where to split; None is any white space."),
        Argument(name="maxsplit", type="int", text="The most cuts; -1 for no limit."),
    ),
    returns="A tuple of the pieces.",
    documented=(split,),
)
FILL = TextSpec(
    name="text_fill",
    function=fill,
    primal=_fill,
    cases=_fill_cases,
    raises=_fill_misuses,
    wrt=("template", "values"),
    arguments=(
        Argument(
            name="template", type="Variable | str", gradient=True, text="A text with `{name}` where a value belongs."
        ),
        Argument(name="values", type="Variable | str | float", gradient=True, text="The values, each by its name."),
    ),
    returns="The filled template.",
    documented=(fill,),
)
