"""Models behind OpenAI's chat-completions protocol: OpenAI itself, vLLM, llama.cpp, Ollama, LM Studio."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

from gradspec.text.lm import _meter, _wire
from gradspec.text.lm._deadline import seconds_left
from gradspec.text.lm._errors import StatusError
from gradspec.text.lm._http import Reply, written
from gradspec.text.lm._model import Completion, Messages, acomplete, as_messages, complete
from gradspec.text.lm._route import Route
from gradspec.text.lm._secrets import Secrets, check_secrets
from gradspec.text.lm._sockets import Sockets
from gradspec.text.lm._stand_in import stand_in
from gradspec.text.lm._streams import Streams
from gradspec.text.lm._tape import tape

OFFICIAL = "https://api.openai.com/v1"
#: Headers only for OpenAI, and the variables that hold them.
FROM_ENVIRONMENT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


class OpenAIModel:
    """Ask a server that speaks OpenAI's chat-completions protocol, at any address, with only the standard library.

    Works plain and async. It makes one call and says what failed; put it in a `Client` for retries, cache and budget.

    The key is sent to the server and goes nowhere else: no error, `repr`, log, cache or pickle has it. The key in the
    environment variable `OPENAI_API_KEY` is only for OpenAI, so it is not sent where `base_url` is given.

    Args:
        model: The server's name of the model.
        base_url: The address, such as `http://localhost:11434/v1`; None for `OPENAI_BASE_URL`, or OpenAI itself.
        api_key: The key; None for `OPENAI_API_KEY`, or for no key where `base_url` is given.
        timeout: Seconds that one call may take in all: name look-up, connection, headers and the whole body.
        headers: Further headers, for a gateway; as secret as the key. A gateway may choose the provider by them, so
            a cache keeps the replies to other headers apart, by a hash. Only `Authorization`, `Proxy-Authorization`,
            `api-key` and `x-api-key` say nothing but who pays, and share replies.
        max_reply_bytes: The longest reply that is read.

    No redirect is followed: it is a `StatusError`. `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` count, but a loopback
    address is always reached directly. A key that the model repeats is `[secret]` in the reply.

    Examples:
        >>> OpenAIModel("llama3.2", base_url="http://localhost:11434/v1", api_key="secret")
        OpenAIModel('llama3.2', base_url='http://localhost:11434/v1')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        headers: Mapping[str, str] | None = None,
        max_reply_bytes: int = 64 * 2**20,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ValueError(f"model is the server's name of a model, such as 'gpt-4o', not {model!r}")
        if not isinstance(base_url, str | None):
            raise TypeError(f"base_url is a text, such as http://localhost:11434/v1, not {base_url!r}")
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL
        try:
            parts = urlsplit(url)
        except ValueError:  # its text could repeat a password
            raise ValueError("base_url is not an address, such as http://localhost:11434/v1") from None
        try:
            _ = parts.port
        except ValueError:
            raise ValueError("base_url has a port that is not a number from 0 to 65535") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url is an http or https address, such as http://localhost:11434/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("base_url carries a user, password or query; pass secrets as api_key or headers instead")
        if not isinstance(timeout, int | float) or not 0 < timeout < threading.TIMEOUT_MAX:
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
        if not isinstance(max_reply_bytes, int) or max_reply_bytes < 1:
            raise ValueError(f"max_reply_bytes is a whole number, 1 or more, not {max_reply_bytes!r}")
        check_secrets(api_key, headers)
        key = api_key or (None if base_url else os.environ.get("OPENAI_API_KEY"))
        check_secrets(key, None, of="OPENAI_API_KEY")
        if key is None and base_url is None and url == OFFICIAL:
            raise ValueError("OpenAI needs a key: pass api_key, or set OPENAI_API_KEY; a local server needs base_url")
        self.model = model
        self.base_url = url.rstrip("/")
        self.timeout = timeout
        self.max_reply_bytes = max_reply_bytes
        self._secrets = Secrets(key=key, headers=dict(headers or {}))
        self._route = Route.to(self.base_url)
        self._sockets = Sockets(self._route)
        self._streams = Streams(self._route)
        weakref.finalize(self, self._sockets.close)  # open connections would else wait to be found as garbage
        self._given_address = base_url is not None

    def __repr__(self) -> str:
        return f"OpenAIModel({self.model!r}, base_url={self.base_url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an OpenAIModel holds a key and is not pickled; make one in each process")

    def __deepcopy__(self, memo: object) -> OpenAIModel:
        return self  # it holds connections and nothing that changes

    @property
    def identity(self) -> dict[str, Any]:
        """The protocol, the address, the name and a hash of the headers, by which a cache knows the model; no key."""
        told_apart = {} if (found := self._secrets.fingerprint(self.base_url)) is None else {"headers": found}
        return {"protocol": "openai-chat", "base_url": self.base_url, "model": self.model, **told_apart}

    def __call__(self, messages: Messages, *, schema: Mapping[str, Any] | None = None, **options: Any) -> Completion:
        """Return the completion of messages; options go into the request's body as they are."""
        answer = stand_in()
        if answer is not None:
            return answer(self, as_messages(messages), {"schema": schema, **options})
        if tape() is not None:
            with _meter.paused():  # it was called by itself, so nobody counts it
                return complete(self, messages, **({} if schema is None else {"schema": schema}), **options)
        request = self._request(messages, schema, options)
        limit = self._limit()
        failed: Exception
        try:
            reply = self._sockets.exchange(request, until=time.monotonic() + limit, limit=self.max_reply_bytes)
            return self._completion(reply)
        except Exception as error:
            failed = self._translated(error, limit)
        raise failed  # outside of the block: what is raised holds nothing of what it was made of

    async def acall(self, messages: Messages, *, schema: Mapping[str, Any] | None = None, **options: Any) -> Completion:
        """Return the completion of messages, from an event loop; the same arguments, results and errors."""
        answer = stand_in()
        if answer is not None:
            return answer(self, as_messages(messages), {"schema": schema, **options})
        if tape() is not None:
            with _meter.paused():
                return await acomplete(self, messages, **({} if schema is None else {"schema": schema}), **options)
        request = self._request(messages, schema, options)
        limit = self._limit()
        failed: Exception
        try:
            async with asyncio.timeout(limit):
                reply = await self._streams.exchange(request, limit=self.max_reply_bytes)
            return self._completion(reply)
        except Exception as error:
            failed = self._translated(error, limit)
        raise failed

    def _request(self, messages: Messages, schema: Mapping[str, Any] | None, options: Mapping[str, Any]) -> bytes:
        body = _wire.request_body(self.model, as_messages(messages), schema, options)
        return written("POST", self._route.target(self._path), self._headers, body)

    def _completion(self, reply: Reply) -> Completion:
        if not 200 <= reply.status < 300:
            raise _wire.status_error(reply, where=self._where, secrets=self._secrets)
        return _wire.completion(bytes(reply.body), self._secrets)

    def _limit(self) -> float:
        left = seconds_left(self.timeout)
        return max(1e-3, self.timeout if left is None else left)

    def _translated(self, error: Exception, limit: float) -> Exception:
        if isinstance(error, StatusError):
            return error
        return _wire.translated(error, where=self._where, limit=limit, secrets=self._secrets)

    @property
    def _where(self) -> str:
        return f"{self.model!r} at {self.base_url}"

    @property
    def _path(self) -> str:
        return quote(f"{urlsplit(self.base_url).path}/chat/completions", safe="/%:@!$&'()*+,;=~-._")

    @property
    def _headers(self) -> dict[str, str]:
        """Return the headers of a call, made for each, so that no attribute but the secrets holds a secret.

        What was given prevails.
        """
        headers = {
            "Host": self._route.named,
            "User-Agent": "gradspec",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        if self._route.proxy is not None and not self._route.tls:
            headers |= self._route.authorized
        if not self._given_address:
            for name, variable in FROM_ENVIRONMENT.items():
                if os.environ.get(variable):
                    headers[name] = os.environ[variable]
        if self._secrets.key is not None:
            headers["Authorization"] = f"Bearer {self._secrets.key}"
        given = {name.lower() for name in self._secrets.headers}
        return {name: value for name, value in headers.items() if name.lower() not in given} | self._secrets.headers
