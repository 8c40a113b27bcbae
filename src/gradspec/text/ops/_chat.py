"""A chat completion: a language model answers, and says on the way back what should change in what it was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from gradspec.text._engine._deferred import Deferred, defer
from gradspec.text._graph._deferred import computed, given, variable_of
from gradspec.text._graph._function import Function
from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._pending import Pending
from gradspec.text.lm import Completion, Message, Model, SchemaError, complete
from gradspec.text.lm._model import check_model
from gradspec.text.lm._schema import parse
from gradspec.text.lm._schema_check import check_schema
from gradspec.text.ops._bounded import feedback_of
from gradspec.text.ops._conversation import batch_length, conversations_of, each_of, message_of, pieces_of, text_at
from gradspec.text.ops._prompts import PROMPTS, Prompts, check_prompts
from gradspec.text.ops._template import filled


class ChatCompletion(Function):
    """Ask a model, and for each Variable in the messages ask it again, given the feedback, what should change there.

    Where Variables hold lists, there is one conversation for each place of the lists; a Variable that holds one text
    is in all of them, and its gradient is what was said of each, a line each.
    """

    @staticmethod
    def forward(
        ctx: Any,
        model: Model,
        messages: list[Any],
        options: Mapping[str, Any],
        role: str,
        backward_model: Model,
        prompts: Prompts,
    ) -> Variable:
        """Return the answer, or the list of answers."""
        length = batch_length(messages)
        roles = [message["role"] for message in messages]
        texts = [[given(piece) for piece in pieces_of(message["content"])] for message in messages]
        ctx.single, ctx.model, ctx.prompts = length is None, backward_model, prompts

        def calls() -> list[Any]:
            ctx.conversations = conversations_of(roles, texts, length)
            return [partial(complete, model, said, **options) for said in ctx.conversations]

        # Filled when the answer is there; the answer holds it, and not the node.
        values: list[Any] = []

        def answered(done: list[Completion]) -> Any:
            ctx.answers = [completion.text for completion in done]
            found = [_value(completion, options.get("schema")) for completion in done]
            values.append(found[0] if length is None else found)
            return ctx.answers[0] if length is None else [*ctx.answers]

        contents = [message["content"] for message in messages]
        # Where the Variables are is kept beside them: a pass looks at what was saved once more before it begins.
        ctx.places = [each_of(content, lambda _: True) for content in contents]
        pieces = [piece for content in contents for piece in pieces_of(content)]
        ctx.save_for_backward(*[piece for piece in pieces if isinstance(piece, Variable)])
        answer = computed([text for line in texts for text in line], calls, answered, (str, length))
        ctx._pending = answer if isinstance(answer, Pending) else None
        variable = variable_of(answer, role)
        if options.get("schema") is not None:
            variable._values = values
        return variable

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> tuple[Any, ...]:
        """Return the calls that ask the model what should change in each Variable."""
        said: Any = feedback_of(grad_out, ctx.prompts.limit)
        feedback = said if isinstance(said, list) else [said] * len(ctx.answers)
        if len(feedback) != len(ctx.answers):
            raise ValueError(f"{len(feedback)} pieces of feedback for {len(ctx.answers)} answers")
        asks = iter([_asked(ctx, variable, feedback) for variable in ctx.saved_variables])
        gradients = [{"content": each_of(places, lambda _: next(asks))} for places in ctx.places]
        return None, gradients, None, None, None, None


def chat(
    model: Model,
    messages: str | Variable | Sequence[Mapping[str, Any] | Message],
    *,
    role: str = "answer",
    backward_model: Model | None = None,
    prompts: Prompts = PROMPTS,
    schema: Mapping[str, Any] | None = None,
    **options: Any,
) -> Variable:
    """Ask a language model; on the way back it says what should change in each Variable of the messages.

    With `concurrency(k)`, the calls overlap with each other and with the program: the answer is returned at once, and
    waited for when its data is read. On the way back the calls for all Variables and all places overlap. On a running
    event loop the answer is returned at once too; `await answer.ready()` waits for it without holding the loop up.

    Args:
        model: Any callable that takes messages and options, and returns a text or a `Completion`; or an async one.
        messages: Each a mapping with `role` and `content`; the content is a text, a Variable, or a list of both. A lone
            text or Variable is one message of the user.
        role: The role of the answer.
        backward_model: The model that is asked for feedback; None is `model`.
        prompts: What it is told.
        schema: The JSON schema that the reply must satisfy; its data is the answer's `value`.
        **options: Handed to the model in forward.

    Raises:
        TypeError: the model is not callable, or a message is not a mapping with the keys `role` and `content`.
        ValueError: there is no message, the lists in one batch have different lengths, or the schema cannot be checked.
        SchemaError: The reply does not satisfy the schema.

    Example:
        >>> from gradspec.text import Variable
        >>> def model(messages):
        ...     return "PARIS" if len(messages) == 2 else "Ask for lower case."
        >>> system = Variable("Answer.", role="system prompt", requires_grad=True)
        >>> question = Variable("Capital of France?", role="question")
        >>> answer = chat(model, [{"role": "system", "content": system}, {"role": "user", "content": question}])
        >>> answer.backward(Variable("It shouts."))
        >>> answer.data, system.grad.data
        ('PARIS', 'Ask for lower case.')
    """
    check_model(model)
    check_prompts(prompts)
    if isinstance(messages, str | Variable):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, Iterable) or isinstance(messages, Mapping):
        raise TypeError(f"messages are a text, a Variable, or a list of messages, not {messages!r}")
    if schema is not None:
        check_schema(schema)
        options["schema"] = schema
    said = [message_of(message) for message in messages]
    if not said:
        raise ValueError("a chat needs at least one message; the list is empty")
    result: Variable = ChatCompletion.apply(model, said, options, role, backward_model or model, prompts)
    return result


def _value(completion: Completion, schema: Any) -> Any:
    """Return the data of a reply; a `Client` has read it, and asked again where it did not fit."""
    if schema is None or completion.value is not None:
        return completion.value
    value, problems = parse(completion.text, schema)
    if problems:
        raise SchemaError(
            f"the reply does not satisfy the schema: {'; '.join(problems[:5])}. A Client around the model asks again.",
            text=completion.text,
            problems=tuple(problems),
        )
    return value


def _asked(ctx: Any, variable: Variable, feedback: Sequence[Any]) -> Deferred | None:
    """Return the calls that ask what should change in a Variable: one for each place, if anything was said there."""
    if not ctx.wants(variable):
        return None
    if ctx.single:
        return defer(partial(_told, ctx, variable, str(feedback[0])))
    role = f"feedback to {variable.role}"
    calls = [defer(_ask, ctx, variable, place, text) if text else "" for place, text in enumerate(map(str, feedback))]
    if isinstance(variable.data, list):
        return defer(lambda *said: Variable(list(said), role=role), *calls)
    return defer(lambda *said: Variable("\n".join(filter(None, said)), role=role), *calls)


def _told(ctx: Any, variable: Variable, feedback: str) -> Variable:
    return Variable(_ask(ctx, variable, 0, feedback) if feedback else "", role=f"feedback to {variable.role}")


def _ask(ctx: Any, variable: Variable, place: int, feedback: str) -> str:
    conversation = "\n".join(f"{message['role']}: {message['content']}" for message in ctx.conversations[place])
    values = {
        "role": variable.role or "piece",
        "value": text_at(variable.data, place),
        "conversation": conversation,
        "output": ctx.answers[place],
        "feedback": feedback,
    }
    return complete(ctx.model, filled(ctx.prompts.feedback, values)).text
