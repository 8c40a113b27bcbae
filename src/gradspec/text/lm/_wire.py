"""OpenAI's chat-completions protocol: what is sent, what is read, and what each failure means."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from gradspec._one_line import name_of
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


#: Reasons to end that leave no answer where there is no text: a model may also choose to say nothing.
CUT_SHORT = ("length", "content_filter")


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
        message = choice["message"]
        text = _joined(message.get("content"))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        begins = reply.decode("utf-8", "replace")
        begins = cut(begins if secrets is None else secrets.redacted(begins), 200)
        raise ReplyError(
            f"the reply is not a chat completion ({type(error).__name__}); it begins with {begins!r}"
        ) from None
    reason, model, name = (
        _word(said, secrets) for said in (choice.get("finish_reason"), data.get("model"), data.get("id"))
    )
    if not isinstance(text, str) or (not text and (reason in CUT_SHORT or message.get("tool_calls"))):
        raise ReplyError(
            f"the reply has no text; {_instead(message, secrets) or f'it ended with finish_reason {reason!r}'}"
        )
    if secrets is not None:
        text = secrets.out_of_reply(text)
    return Completion(text=text, usage=_usage(data.get("usage")), finish_reason=reason, model=model, id=name)


def status_error(reply: Reply, *, where: str, secrets: Secrets) -> StatusError:
    """Return the error that a reply with a status other than 2xx is."""
    said = shown(_said(reply), secrets)
    if 300 <= reply.status < 400 and "location" in reply.headers:
        there = shown(reply.headers["location"], secrets)
        said = f"a redirect to {there}, which is not followed; if you trust that address, make it the base_url"
    after = retry_after(reply.headers)
    ends = "" if said.endswith((".", "!", "?")) else "."
    asked = "" if after is None else f"{ends} It asks to wait {after:g} s."
    message = f"{where} answered with status {reply.status}: {said}{asked}"
    return StatusError(message, status=reply.status, retry_after=after)


def translated(error: Exception, *, where: str, limit: float, secrets: Secrets) -> Exception:
    """Return what went wrong on the way as an error of ours, without secrets."""
    if isinstance(error, ModelTimeoutError | TimeoutError):
        return ModelTimeoutError(f"{where} did not answer within {limit:.3g} s; raise timeout if it needs longer")
    if isinstance(error, ModelError):
        return type(error)(f"{where}: {name_of(secrets.redacted(str(error)))}")
    if isinstance(error, OSError):
        said = name_of(secrets.redacted(str(error) or type(error).__name__))
        return ModelConnectionError(f"{where} cannot be reached, or broke off: {said}")
    return error


def cut(text: str, limit: int = 500) -> str:
    """Return the beginning of a text from which the secrets were taken before: half a secret is one too."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def shown(text: str, secrets: Secrets | None, limit: int = 500) -> str:
    r"""Return the beginning of what a server says, for a message: without secrets, in one line, controls escaped.

    Examples:
        >>> shown("no\n\x1b[31msuch model", None)
        'no\\n\\x1b[31msuch model'
    """
    return cut(name_of(text if secrets is None else secrets.redacted(text)), limit)


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


def _joined(content: Any) -> Any:
    """Return the text of a content in parts, the other form that the protocol has for it; else the content itself."""
    if not isinstance(content, list) or not content:
        return content
    found = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    texts = [text for text in found if isinstance(text, str)]
    return "".join(texts) if len(texts) == len(content) else content


def _instead(message: dict[str, Any], secrets: Secrets | None) -> str:
    """Return what a message without text has; empty where that is nothing."""
    if refusal := message.get("refusal"):
        return f"the model refused: {shown(str(refusal), secrets)}"
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        functions = [call.get("function") if isinstance(call, dict) else None for call in calls]
        names = [function.get("name") if isinstance(function, dict) else None for function in functions]
        named = ", ".join(shown(name, secrets, 80) for name in names if isinstance(name, str)) or "without a name"
        return f"it calls a tool, {named}: what it returns is not supported; ask without the option 'tools'"
    if not isinstance(parts := message.get("content"), list) or not parts:
        return ""
    kinds = [part.get("type") if isinstance(part, dict) else None for part in parts]
    others = dict.fromkeys(shown(kind, secrets, 80) for kind in kinds if isinstance(kind, str) and kind != "text")
    return f"its content has parts that are not text: {', '.join(others) or 'of no type'}"


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
