"""OpenAI's chat-completions protocol: what is sent, what is read, and what each failure means."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from gradspec.text.lm._errors import ModelConnectionError, ModelError, ModelTimeoutError, ReplyError, StatusError
from gradspec.text.lm._model import Completion, Message, Usage

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


class Secrets:
    """A key and headers that are sent and never shown."""

    def __init__(self, *, key: str | None, headers: Mapping[str, str]) -> None:
        self.key = key
        self.headers = dict(headers)

    def __repr__(self) -> str:
        return "Secrets(...)"

    def redacted(self, text: str) -> str:
        """Return a text without the key and the values of the headers."""
        for secret in sorted(filter(None, (self.key, *self.headers.values())), key=len, reverse=True):
            text = text.replace(secret, "[secret]")
        return text


def sdk() -> ModuleType:
    """Return the openai package, or say how to install it."""
    try:
        import openai
    except ImportError as error:
        raise ImportError("OpenAIModel needs the openai package: pip install 'openai>=3'") from error
    return openai


def arguments(
    model: str, messages: tuple[Message, ...], schema: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of the SDK's `create`; options go into the body as they are, a server's own ones too."""
    for name, instead in NOT_OPTIONS.items():
        if name in options:
            raise TypeError(f"{name!r} is no option of a call; {instead}")
    body = dict(options)
    if schema is not None:
        form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        body.setdefault("response_format", form)
    # The SDK walks through its own `messages`, to rename keys that these do not have: a quarter of the time of a call.
    body["messages"] = [{"role": m.role, "content": m.content} for m in messages]
    return {"model": model, "messages": [], "extra_body": body}


def completion(reply: bytes) -> Completion:
    """Return the completion that the body of a reply holds, or raise `ReplyError`."""
    try:
        data = json.loads(reply)
        choice = data["choices"][0]
        text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        begins = reply[:200].decode("utf-8", "replace")
        raise ReplyError(
            f"the reply is no chat completion ({type(error).__name__}); it begins with {begins!r}"
        ) from None
    reason = choice.get("finish_reason")
    if not isinstance(text, str):
        why = f"the model refused: {refusal}" if refusal else f"it ended with finish_reason {reason!r}"
        raise ReplyError(f"the reply has no text; {why}")
    return Completion(text=text, usage=_usage(data.get("usage")), finish_reason=reason)


def translated(error: Exception, *, where: str, limit: float | None, secrets: Secrets) -> Exception:
    """Return what an error of the SDK means, as an error of ours without secrets and without the request."""
    openai = sdk()
    import httpx2

    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return ModelTimeoutError(f"{where} did not answer within {limit:.3g} s; raise timeout if it needs longer")
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        said = secrets.redacted(_said(error))[:500]
        after = retry_after(error.response.headers)
        asked = "" if after is None else f" It asks to wait {after:g} s."
        return StatusError(f"{where} answered with status {status}: {said}{asked}", status=status, retry_after=after)
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        cause = error.__cause__ or error
        said = secrets.redacted(str(cause) or type(cause).__name__)
        return ModelConnectionError(f"{where} cannot be reached, or broke off: {said}")
    if isinstance(error, openai.OpenAIError | httpx2.HTTPError):
        return ReplyError(f"{where}: {secrets.redacted(str(error))[:500]}")
    if isinstance(error, ModelError):
        return type(error)(f"{where}: {secrets.redacted(str(error))}")
    return error


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


def _said(error: Any) -> str:
    body = error.body if isinstance(error.body, Mapping) else {}
    said = body.get("message")
    return said if isinstance(said, str) else " ".join(error.response.text.split()) or "nothing"


def _usage(data: Any) -> Usage | None:
    try:
        return Usage(prompt_tokens=int(data["prompt_tokens"]), completion_tokens=int(data["completion_tokens"]))
    except (LookupError, TypeError, ValueError):
        return None
