"""Typed events of model calls and backward passes, for observers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

_LOG = logging.getLogger("gradspec.text")


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened. It holds no prompt, no reply and no key."""

    #: The name of the event.
    name: ClassVar[str] = ""
    #: When it happened, in seconds since 1970.
    time: float = field(default_factory=time.time)

    @property
    def attributes(self) -> dict[str, Any]:
        """What is known of it, under OpenTelemetry's names for generative models where there is one."""
        known = {
            OPEN_TELEMETRY.get(item.name, f"gradspec.{item.name}"): getattr(self, item.name) for item in fields(self)
        }
        known.pop("gradspec.time")
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Called(Event):
    """A model was called, and answered or failed."""

    name: ClassVar[str] = "call"
    #: The model's name.
    model: str
    #: Seconds that it took.
    seconds: float
    #: What was asked for: always `chat`.
    operation: str = "chat"
    #: Whose protocol it is: `openai`, for any server that speaks it.
    provider: str | None = None
    #: The address of the server, if it has one.
    server: str | None = None
    #: Its port.
    port: int | None = None
    #: What was asked for: the options of the call, where it has them.
    temperature: float | None = None
    #: The most tokens of the reply.
    max_tokens: int | None = None
    #: The part of the probability that is drawn from.
    top_p: float | None = None
    #: The seed of the draw.
    seed: int | None = None
    #: `json` where a schema was asked for.
    output_type: str | None = None
    #: The tokens of the messages, as the model counted them.
    input_tokens: int | None = None
    #: The tokens of the reply.
    output_tokens: int | None = None
    #: Why the model stopped, in its own words.
    finish_reasons: tuple[str, ...] | None = None
    #: The model that answered, in the server's word.
    response_model: str | None = None
    #: The server's name of the reply.
    response_id: str | None = None
    #: The type of the error, if it failed.
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Retried(Event):
    """A call failed and will be made again."""

    name: ClassVar[str] = "retry"
    #: The model's name.
    model: str
    #: How many calls were made.
    attempt: int
    #: Seconds until the next one.
    delay: float
    #: The type of the error.
    error: str


@dataclass(frozen=True, kw_only=True)
class CacheHit(Event):
    """A reply came from the cache, or from an equal request that was under way."""

    name: ClassVar[str] = "cache_hit"
    #: The model's name.
    model: str


@dataclass(frozen=True, kw_only=True)
class BackwardStep(Event):
    """The backward of one call in a graph has run."""

    name: ClassVar[str] = "backward_step"
    #: The name of the node.
    node: str
    #: The roles of the outputs that it was given feedback on.
    roles: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Committed(Event):
    """A backward pass has written its gradients."""

    name: ClassVar[str] = "commit"
    #: How many Variables got a gradient.
    gradients: int


#: As in opentelemetry-semantic-conventions 0.66b2; the last is the name of a metric.
OPEN_TELEMETRY = {
    "operation": "gen_ai.operation.name",
    "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "server": "server.address",
    "port": "server.port",
    "temperature": "gen_ai.request.temperature",
    "max_tokens": "gen_ai.request.max_tokens",
    "top_p": "gen_ai.request.top_p",
    "seed": "gen_ai.request.seed",
    "output_type": "gen_ai.output.type",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "finish_reasons": "gen_ai.response.finish_reasons",
    "response_model": "gen_ai.response.model",
    "response_id": "gen_ai.response.id",
    "error": "error.type",
    "seconds": "gen_ai.client.operation.duration",
}
#: What is told of each event: any callable.
Sink: TypeAlias = Callable[[Event], object]
_SINKS: ContextVar[tuple[Sink, ...]] = ContextVar("gradspec.text.sinks", default=())


@contextmanager
def watch(*sinks: Sink) -> Iterator[None]:
    """Tell sinks of every event in a block, in the threads and tasks of its calls too.

    A sink is called where the event happens, by several threads at once where calls overlap. One that raises is
    reported to the logger `gradspec.text` and changes nothing: a reply that was paid for is not lost for it.

    Args:
        *sinks: Callables that take an `Event`, such as `JsonLines` and `to_logger`.

    Example:
        >>> from gradspec.text import Variable, watch
        >>> x = Variable("a", role="letter", requires_grad=True)
        >>> with watch(lambda event: print(event.name, event.attributes)):
        ...     (x + "b").backward(Variable("shorter"))
        backward_step {'gradspec.node': 'AddBackward', 'gradspec.roles': ('letter',)}
        commit {'gradspec.gradients': 1}
    """
    for sink in sinks:
        if not callable(sink):
            raise TypeError(f"a sink is a callable that takes an event, not {sink!r}")
    token = _SINKS.set((*_SINKS.get(), *sinks))
    try:
        yield
    finally:
        _SINKS.reset(token)


def watched() -> bool:
    """Return whether anybody watches: an event that nobody is told of need not be made."""
    return bool(_SINKS.get())


def emit(event: Event) -> None:
    """Tell whoever watches."""
    for sink in _SINKS.get():
        try:
            sink(event)
        except Exception:
            _LOG.exception("a sink failed at the event %s", event.name)
