"""The type of a language model: any callable, plain or async, from messages and options to a text."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gradspec.text._scheduling._stop import check_stopped
from gradspec.text.lm import _bridge, _meter
from gradspec.text.lm._stand_in import stand_in
from gradspec.text.lm._tape import tape
from gradspec.text.lm._telling import telling

if TYPE_CHECKING:
    from gradspec.text.lm._cassette import Take

#: The roles that a message may have.
ROLES = ("system", "developer", "user", "assistant")


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a chat.

    Examples:
        >>> Message(role="user", content="Is 7 prime?")
        Message(role='user', content='Is 7 prime?')
    """

    #: Who speaks: `system`, `developer`, `user` or `assistant`.
    role: str
    #: What is said.
    content: str

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"a message has one of the roles {', '.join(ROLES)}, not {self.role!r}")
        if not isinstance(self.content, str):
            raise TypeError(
                f"the content of a message is a string, not a {type(self.content).__name__}; pass the Variable's .data"
            )


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The tokens that one completion cost, as the server counted them."""

    #: Tokens of the messages.
    prompt_tokens: int
    #: Tokens of the reply.
    completion_tokens: int

    @property
    def total(self) -> int:
        """The tokens of both directions."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The answer of a model."""

    #: The reply.
    text: str
    #: The tokens that it cost; None where the model does not count.
    usage: Usage | None = None
    #: Why the model stopped, in the server's word: `stop`, `length`; None where it does not say.
    finish_reason: str | None = None
    #: The reply as JSON data, where a schema was asked for.
    value: Any = None
    #: Whether the reply came from the cache and cost nothing now.
    cached: bool = False
    #: The model that answered, in the server's word: often a dated version of the one that was asked.
    model: str | None = None
    #: The server's name of this reply.
    id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"the text of a Completion is a string, not {_kind(self.text)}; write '' if it has none")
        if not isinstance(self.usage, Usage | None):
            raise TypeError(
                f"the usage of a Completion is a Usage or None, not {_kind(self.usage)}; "
                "write Usage(prompt_tokens=..., completion_tokens=...)"
            )


Messages: TypeAlias = str | Iterable[Message | Mapping[str, str]]
#: A model: `model(messages, **options)` gives a text or a `Completion`, or an awaitable of one.
Model: TypeAlias = Callable[..., str | Completion | Awaitable[str | Completion]]


def as_messages(messages: Messages) -> tuple[Message, ...]:
    """Return messages as a tuple of `Message`; a lone string is one message of the user.

    Examples:
        >>> as_messages([{"role": "system", "content": "Be short."}, Message(role="user", content="Hi")])
        (Message(role='system', content='Be short.'), Message(role='user', content='Hi'))
    """
    if isinstance(messages, str):
        return (Message(role="user", content=messages),)
    if isinstance(messages, Mapping | Message) or not isinstance(messages, Iterable):
        raise TypeError(f"messages are a string or a list of messages, not a {type(messages).__name__}")
    found = tuple(m if isinstance(m, Message) else _from_mapping(m) for m in messages)
    if not found:
        raise ValueError("a completion needs at least one message; the list is empty")
    return found


def check_model(model: object) -> None:
    """Refuse what cannot be asked.

    Examples:
        >>> check_model("gpt-4o")
        Traceback (most recent call last):
        ...
        TypeError: a model is a callable that takes messages, such as OpenAIModel(name), not 'gpt-4o'
    """
    if isinstance(model, type):
        raise TypeError(f"a model is an instance: write {model.__name__}(...), and not the class")
    if not callable(model):
        raise TypeError(f"a model is a callable that takes messages, such as OpenAIModel(name), not {model!r}")


def complete(model: Model, messages: Messages, **options: Any) -> Completion:
    """Call a model, plain or async, and wait for its completion.

    An async model runs on an event loop of its own thread, so that several threads may wait at once.

    Args:
        model: Any callable that takes a tuple of `Message` and keyword options and returns a text or a `Completion`.
        messages: A string, or a list of `Message` or mappings with `role` and `content`.
        **options: Handed to the model as they are.

    Examples:
        >>> complete(lambda messages: messages[-1].content.upper(), "quiet").text
        'QUIET'
    """
    check_model(model)
    said = as_messages(messages)
    answer = stand_in()
    if answer is not None:
        return answer(model, said, options)
    check_stopped()
    take = _take(model, said, options)
    if take is None:
        return _complete(model, said, options)
    found = take.found()
    if found is not None:
        _meter.count(model, found.usage)
        return found
    with take.recorded() as keep:
        return keep(_complete(model, said, options))


def _complete(model: Model, said: tuple[Message, ...], options: Mapping[str, Any]) -> Completion:
    with telling(model, options) as told:
        reply = model(said, **options)
        if not isinstance(reply, str | Completion) and inspect.isawaitable(reply):
            reply = _bridge.wait_for(reply)
        return told(as_completion(reply))


async def acomplete(model: Model, messages: Messages, **options: Any) -> Completion:
    """Call a model, plain or async, from an event loop that is not held up.

    A model with an `acall` method is called by it, an async callable is awaited, and a plain callable runs in a
    thread with the caller's context variables.

    Examples:
        >>> import asyncio
        >>> asyncio.run(acomplete(lambda messages: messages[-1].content.upper(), "quiet")).text
        'QUIET'
    """
    check_model(model)
    said = as_messages(messages)
    answer = stand_in()
    if answer is not None:
        return answer(model, said, options)
    take = _take(model, said, options)
    if take is None:
        return await _acomplete(model, said, options)
    found = take.found()
    if found is not None:
        _meter.count(model, found.usage)
        return found
    with take.recorded() as keep:
        return keep(await _acomplete(model, said, options))


async def _acomplete(model: Model, said: tuple[Message, ...], options: Mapping[str, Any]) -> Completion:
    acall = getattr(model, "acall", None)
    with telling(model, options) as told:
        if acall is not None:
            return told(as_completion(await _bridge.in_time(acall(said, **options))))
        if is_async(model):
            reply = model(said, **options)
        else:
            reply = await _bridge.in_time(_bridge.in_thread(lambda: model(said, **options)))
        return told(as_completion(await _bridge.in_time(reply) if inspect.isawaitable(reply) else reply))


def _take(model: Model, said: tuple[Message, ...], options: Mapping[str, Any]) -> Take | None:
    """Return what records this call, if something does; a client has each of its own recorded."""
    cassette = tape()
    if cassette is None or getattr(model, "counts", False):
        return None
    plain = {name: value for name, value in options.items() if name not in ("schema", "sample")}
    return cassette.take(model, said, plain, schema=options.get("schema"), sample=options.get("sample", 0))


def is_async(model: Model) -> bool:
    """Return whether calling a model gives an awaitable."""
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(getattr(model, "__call__", None))  # noqa: B004


def as_completion(reply: object) -> Completion:
    """Return a model's reply as a `Completion`."""
    if isinstance(reply, Completion):
        return reply
    if isinstance(reply, str):
        return Completion(text=reply)
    raise TypeError(f"a model returns a string or a Completion; this one returned a {type(reply).__name__}")


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _from_mapping(message: object) -> Message:
    if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
        has = f"the keys {sorted(map(str, message))}" if isinstance(message, Mapping) else f"a {type(message).__name__}"
        raise TypeError(f"a message is a Message or a mapping with the keys role and content; this one is {has}")
    return Message(role=message["role"], content=message["content"])
