"""Who is told of a call: the meter, the node of the graph that it is made for, and whoever watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gradspec.text._costs import count as count_cost
from gradspec.text._events import Called, emit, watched
from gradspec.text.lm import _meter

if TYPE_CHECKING:
    from gradspec.text.lm._model import Completion

#: By protocol, whose it is; by scheme, the port; and the options that an event tells of, if they are numbers.
PROVIDERS = {"openai-chat": "openai"}
PORTS = {"http": 80, "https": 443}
NUMBERS = {"temperature": int | float, "max_tokens": int, "top_p": int | float, "seed": int}


@contextmanager
def telling(model: object, options: Mapping[str, Any]) -> Iterator[Callable[[Completion], Completion]]:
    """Count what a model answers, and tell whoever watches; a client does so itself, of each call that it makes."""
    if getattr(model, "counts", False):
        yield lambda completion: completion
        return
    answers: list[Completion] = []
    began, name = time.monotonic(), _meter.name_here(model)

    def told(completion: Completion) -> Completion:
        answers.append(completion)
        return completion

    try:
        yield told
    except BaseException as error:
        took = time.monotonic() - began
        count_cost(name, None, took)
        _emit(name, model, options, took, None, type(error).__name__)
        raise
    took = time.monotonic() - began
    _meter.count(model, answers[0].usage)
    count_cost(name, answers[0].usage, took)
    _emit(name, model, options, took, answers[0], None)


def _emit(
    name: str,
    model: object,
    options: Mapping[str, Any],
    seconds: float,
    completion: Completion | None,
    error: str | None,
) -> None:
    if not watched():
        return
    usage, reason, answered, reply = (
        (completion.usage, completion.finish_reason, completion.model, completion.id) if completion else (None,) * 4
    )
    identity = getattr(model, "identity", None) or {}
    at = urlsplit(identity.get("base_url", ""))
    emit(
        Called(
            model=name,
            seconds=seconds,
            provider=PROVIDERS.get(identity.get("protocol", "")),
            server=at.hostname,
            port=at.port or PORTS.get(at.scheme),
            **{option: options[option] for option, kind in NUMBERS.items() if isinstance(options.get(option), kind)},
            output_type=None if options.get("schema") is None else "json",
            input_tokens=None if usage is None else usage.prompt_tokens,
            output_tokens=None if usage is None else usage.completion_tokens,
            finish_reasons=None if reason is None else (reason,),
            response_model=answered,
            response_id=reply,
            error=error,
        )
    )
