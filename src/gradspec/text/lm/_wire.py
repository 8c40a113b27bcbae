"""OpenAI's chat-completions protocol: what is sent, what is read, and what each failure means."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from gradspec.text.lm._budget import is_possible
from gradspec.text.lm._errors import ModelConnectionError, ModelError, ModelTimeoutError, ReplyError, StatusError
from gradspec.text.lm._http import Reply
from gradspec.text.lm._model import Completion, Message, Usage
from gradspec.text.lm._secrets import Secrets

#: Options that would change where a request goes, who pays for it, or how its reply is read.
NOT_OPTIONS = {
    "api_key": "pass it to OpenAIModel",
    "base_url": "pass it to OpenAIModel",
    "extra_body": "pass its entries as options",
    "extra_headers": "pass headers to OpenAIModel",
    "extra_query": "it is not supported",
    "messages": "pass them as the first argument",
    "model": "pass it to OpenAIModel",
    "n": "ask several times, with sample=0, 1, ...",
    "stream": "a reply is read whole",
    "timeout": "pass it to OpenAIModel",
}


def request_body(
    model: str, messages: tuple[Message, ...], schema: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> bytes:
    """Return the body of a request; options go into it as they are, a server's own ones too."""
    for name, instead in NOT_OPTIONS.items():
        if name in options:
            raise TypeError(f"{name!r} is not an option of a call; {instead}")
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": m.content} for m in messages],
        **options,
    }
    if schema is not None:
        form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        body.setdefault("response_format", form)
    return json.dumps(body, allow_nan=False).encode()


def completion(reply: bytes, secrets: Secrets | None = None) -> Completion:
    """Return the completion that the body of a reply holds, without the key, or raise `ReplyError`."""
    try:
        data = json.loads(reply)
        choice = data["choices"][0]
        text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        begins = reply.decode("utf-8", "replace")
        begins = cut(begins if secrets is None else secrets.redacted(begins), 200)
        raise ReplyError(
            f"the reply is not a chat completion ({type(error).__name__}); it begins with {begins!r}"
        ) from None
    reason, model, name = (
        _word(said, secrets) for said in (choice.get("finish_reason"), data.get("model"), data.get("id"))
    )
    if not isinstance(text, str):
        why = f"the model refused: {refusal}" if refusal else f"it ended with finish_reason {reason!r}"
        raise ReplyError(f"the reply has no text; {why}")
    if secrets is not None:
        text = secrets.out_of_reply(text)
    return Completion(text=text, usage=_usage(data.get("usage")), finish_reason=reason, model=model, id=name)


def status_error(reply: Reply, *, where: str, secrets: Secrets) -> StatusError:
    """Return the error that a reply with a status other than 2xx is."""
    said = cut(secrets.redacted(_said(reply)))
    if 300 <= reply.status < 400:
        there = cut(secrets.redacted(reply.headers.get("location", "nowhere")))
        said = f"a redirect to {there}, which is not followed; if you trust that address, make it the base_url"
    after = retry_after(reply.headers)
    asked = "" if after is None else f" It asks to wait {after:g} s."
    message = f"{where} answered with status {reply.status}: {said}{asked}"
    return StatusError(message, status=reply.status, retry_after=after)


def translated(error: Exception, *, where: str, limit: float, secrets: Secrets) -> Exception:
    """Return what went wrong on the way as an error of ours, without secrets."""
    if isinstance(error, ModelTimeoutError | TimeoutError):
        return ModelTimeoutError(f"{where} did not answer within {limit:.3g} s; raise timeout if it needs longer")
    if isinstance(error, ModelError):
        return type(error)(f"{where}: {secrets.redacted(str(error))}")
    if isinstance(error, OSError):
        said = secrets.redacted(str(error) or type(error).__name__)
        return ModelConnectionError(f"{where} cannot be reached, or broke off: {said}")
    return error


def cut(text: str, limit: int = 500) -> str:
    """Return the beginning of a text from which the secrets were taken before: half a secret is one too."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait: in milliseconds, in seconds, or until a date.

    Examples:
        >>> retry_after({"retry-after": "2"}), retry_after({"retry-after-ms": "150"}), retry_after({})
        (2.0, 0.15, None)
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return _until(headers.get("retry-after"))


def _until(date: str | None) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        then = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _said(reply: Reply) -> str:
    text = reply.body.decode("utf-8", "replace")
    try:
        body = json.loads(text)
        said = body.get("error", body)
        said = said.get("message") if isinstance(said, dict) else said
    except (ValueError, RecursionError, AttributeError):
        said = None
    return said if isinstance(said, str) else " ".join(text.split()) or "nothing"


def _word(said: Any, secrets: Secrets | None) -> str | None:
    """Return a short text beside the reply, without the key; None where the server says none, or something else."""
    if not isinstance(said, str) or not said:
        return None
    return cut(said if secrets is None else secrets.out_of_reply(said), 200)


def _usage(data: Any) -> Usage | None:
    """Return the usage; None where the server says none, or one that cannot be."""
    try:
        usage = Usage(prompt_tokens=data["prompt_tokens"], completion_tokens=data["completion_tokens"])
    except (LookupError, TypeError):
        return None
    return usage if is_possible(usage) else None
