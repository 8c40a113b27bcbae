"""The spec of `chat`: a call of a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradspec.spec import Argument, Misuse, TextCase, TextMaker, TextSpec
from gradspec.text._graph._variable import Variable
from gradspec.text.lm import Model, RuleModel, complete
from gradspec.text.ops._chat import chat

MODEL = RuleModel(
    {
        r"can be changed\. It is the (.*):": r"Say in the \1 that an answer is short.",
        r"capital of (\w+)": r"\1 has a capital, I am sure.",
    },
    default="Pardon?",
)
#: Gives half a point, and says why.
MODEL_ARGUMENT = Argument(name="model", type="Model", text="Any callable that is a model.")


def _chat(model: Model, messages: Sequence[Mapping[str, Any]], *, role: str = "answer", **options: Any) -> Any:
    contents = [message["content"] for message in messages]
    batch = next((len(content) for content in contents if isinstance(content, list)), None)

    def ask(place: int) -> str:
        said = [content[place] if isinstance(content, list) else content for content in contents]
        told = [{"role": message["role"], "content": text} for message, text in zip(messages, said, strict=True)]
        return complete(model, told, **options).text

    return ask(0) if batch is None else [ask(place) for place in range(batch)]


def _chat_cases(make: TextMaker) -> Iterator[TextCase]:
    system, question = make("Answer.", role="system prompt"), make("The capital of France?", role="question")
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    says = {
        "messages[0]['content']": "Say in the system prompt that an answer is short.",
        "messages[1]['content']": "Say in the question that an answer is short.",
    }
    yield TextCase(name="two Variables", args=(MODEL, messages), feedback=("too long",), says=says)
    data = [{"role": "system", "content": make("Answer.", role="prompt")}, {"role": "user", "content": "Well?"}]
    one = {"messages[0]['content']": "Say in the prompt that an answer is short.", "messages[1]['content']": None}
    yield TextCase(name="a Variable and data", args=(MODEL, data), kwargs={"role": "reply"}, says=one)
    batch = Variable(["The capital of France?", "The capital of Peru?"], role="questions")
    many = [{"role": "system", "content": make("Answer.", role="prompt")}, {"role": "user", "content": batch}]
    yield TextCase(name="a batch", args=(MODEL, many), feedback=(["too long", ""],), says={**one})


def _chat_misuses(make: TextMaker) -> Iterator[Misuse]:
    uneven = [{"role": "user", "content": make(["a"])}, {"role": "user", "content": make(["b", "c"])}]
    case = TextCase(name="lists of different lengths", args=(MODEL, uneven))
    yield Misuse(case=case, error=ValueError, match="the lists in one batch have different lengths")
    unknown = {"type": "string", "contentEncoding": "base64"}
    plain = TextCase(name="schema that cannot be checked", args=(MODEL, make("Hello")), kwargs={"schema": unknown})
    yield Misuse(case=plain, error=ValueError, match="contentEncoding")
    number = TextCase(name="a number for a model", args=(3, make("Hello")))
    yield Misuse(case=number, error=TypeError, match="a model is a callable that takes messages")
    yield Misuse(
        case=TextCase(name="a number for a message", args=(MODEL, [3])),
        error=TypeError,
        match="a message is a mapping with the keys role and content",
    )
    silence = TextCase(name="no message", args=(MODEL, []))
    yield Misuse(case=silence, error=ValueError, match="a chat needs at least one message")


CHAT = TextSpec(
    name="text_chat",
    function=chat,
    primal=_chat,
    cases=_chat_cases,
    raises=_chat_misuses,
    wrt=("messages",),
    io_bound=True,
    arguments=(
        MODEL_ARGUMENT,
        Argument(
            name="messages",
            type="Sequence[Mapping[str, Any]]",
            gradient=True,
            text="Each has `role` and `content`; the content is a text, a Variable, or a list of both.",
        ),
        Argument(name="role", type="str", text="The role of the answer."),
        Argument(name="options", type="Any", text="Handed to the model in forward."),
    ),
    returns="The answer, or a list of answers where Variables hold lists.",
    documented=(chat,),
)
