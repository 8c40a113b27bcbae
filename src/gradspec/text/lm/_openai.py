"""Models behind OpenAI's chat-completions protocol: OpenAI itself, vLLM, llama.cpp, Ollama, LM Studio."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import AsyncGenerator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from gradspec.text.lm import _wire
from gradspec.text.lm._deadline import seconds_left
from gradspec.text.lm._errors import ModelTimeoutError, ReplyError
from gradspec.text.lm._model import Completion, Messages, as_messages

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

OFFICIAL = "https://api.openai.com/v1"


class OpenAIModel:
    """Ask a server that speaks OpenAI's chat-completions protocol, at any address. Needs the extra `openai`.

    Works plain and async. It makes one call and says what failed; put it in a `Client` for retries, cache and budget.

    The key is sent to the server and goes nowhere else: no error, `repr`, log, cache or pickle has it. The key in the
    environment variable `OPENAI_API_KEY` is for OpenAI alone, so it is not sent where `base_url` is given.

    Args:
        model: The server's name of the model.
        base_url: The address, such as `http://localhost:11434/v1`; None for `OPENAI_BASE_URL`, or OpenAI itself.
        api_key: The key; None for `OPENAI_API_KEY`, or for no key where `base_url` is given.
        timeout: Seconds that one call may take.
        headers: Further headers, for a gateway; as secret as the key.
        max_reply_bytes: The longest reply that is read.

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
        _wire.sdk()  # a missing extra is said here, not at the first call
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url is an http or https address, such as http://localhost:11434/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("base_url carries a user, password or query; pass secrets as api_key or headers instead")
        if timeout <= 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout}")
        key = api_key or (None if base_url else os.environ.get("OPENAI_API_KEY"))
        if key is None and base_url is None and url == OFFICIAL:
            raise ValueError("OpenAI needs a key: pass api_key, or set OPENAI_API_KEY; a local server needs base_url")
        self.model = model
        self.base_url = url.rstrip("/")
        self.timeout = timeout
        self.max_reply_bytes = max_reply_bytes
        self._secrets = _wire.Secrets(key=key, headers=dict(headers or {}))
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = weakref.WeakKeyDictionary()
        self._keepers: set[AsyncGenerator[None, None]] = set()
        self._given_address = base_url is not None

    def __repr__(self) -> str:
        return f"OpenAIModel({self.model!r}, base_url={self.base_url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an OpenAIModel holds a key and is not pickled; make one in each process")

    def __deepcopy__(self, memo: object) -> OpenAIModel:
        return self  # it holds connections and nothing that changes

    @property
    def identity(self) -> dict[str, Any]:
        """The protocol, the address and the name by which a cache knows the model; never the key."""
        return {"protocol": "openai-chat", "base_url": self.base_url, "model": self.model}

    def __call__(self, messages: Messages, *, schema: Mapping[str, Any] | None = None, **options: Any) -> Completion:
        """Return the completion of messages; options go into the request's body as they are."""
        arguments = _wire.arguments(self.model, as_messages(messages), schema, options)
        create = self._client.chat.completions.with_streaming_response.create
        limit = self._limit()
        ends = time.monotonic() + limit
        failed: Exception
        try:
            with create(**arguments, extra_headers=self._headers, timeout=limit) as response:
                reply = bytearray()
                for chunk in response.iter_bytes():
                    self._grow(reply, chunk, ends)
                return _wire.completion(bytes(reply))
        except Exception as error:
            failed = self._translated(error, limit)
        raise failed  # outside of the block: the library's error holds the request, and must not be the context

    async def acall(self, messages: Messages, *, schema: Mapping[str, Any] | None = None, **options: Any) -> Completion:
        """Return the completion of messages, from an event loop; the same arguments, results and errors."""
        arguments = _wire.arguments(self.model, as_messages(messages), schema, options)
        create = (await self._async_client()).chat.completions.with_streaming_response.create
        limit = self._limit()
        ends = time.monotonic() + limit
        failed: Exception
        try:
            async with create(**arguments, extra_headers=self._headers, timeout=limit) as response:
                reply = bytearray()
                async for chunk in response.iter_bytes():
                    self._grow(reply, chunk, ends)
                return _wire.completion(bytes(reply))
        except Exception as error:
            failed = self._translated(error, limit)
        raise failed

    def _limit(self) -> float:
        left = seconds_left(self.timeout)
        return max(1e-3, self.timeout if left is None else left)

    def _grow(self, reply: bytearray, chunk: bytes, ends: float) -> None:
        """Add a chunk; the library bounds the wait for each chunk, this the whole reply."""
        if reply and time.monotonic() > ends:  # not at the first: a reply that came whole, if late, is paid for
            raise ModelTimeoutError("the reply was not whole in time; raise timeout if it needs longer")
        reply += chunk
        if len(reply) > self.max_reply_bytes:
            raise ReplyError(f"the reply is longer than max_reply_bytes={self.max_reply_bytes}")

    def _translated(self, error: Exception, limit: float) -> Exception:
        where = f"{self.model!r} at {self.base_url}"
        return _wire.translated(error, where=where, limit=limit, secrets=self._secrets)

    def _settings(self) -> dict[str, Any]:
        # The library wants a key; without one its header is left out. Retries are the Client's: each reserves.
        key = self._secrets.key or "none"
        return {
            "api_key": key,
            "base_url": self.base_url,
            "max_retries": 0,
        }

    @property
    def _headers(self) -> dict[str, Any]:
        """Return the headers of a call: what is left out first, so that what was given prevails.

        Made for each call, so that no attribute but the secrets holds a secret.
        """
        names = {"authorization", *(name for name in self._from_environment if self._given_address)}
        given = {name.lower(): value for name, value in self._secrets.headers.items()}
        key = {} if self._secrets.key is None else {"authorization": f"Bearer {self._secrets.key}"}
        return {**dict.fromkeys(names, _wire.sdk().Omit()), **key, **given}

    @property
    def _from_environment(self) -> set[str]:
        """The headers that the library adds from the environment, and a server other than OpenAI's must not see."""
        custom = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
        names = {line.partition(":")[0].strip().lower() for line in custom if ":" in line}
        return names | {"openai-organization", "openai-project"}

    @cached_property
    def _client(self) -> OpenAI:
        client: OpenAI = _wire.sdk().OpenAI(**self._settings())
        weakref.finalize(self, client.close)  # its connections would else stay open until they are found as garbage
        return client

    async def _async_client(self) -> AsyncOpenAI:
        """Return the client of the running loop; the loop closes it when it shuts its generators down."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = _wire.sdk().AsyncOpenAI(**self._settings())
            keeper = self._keep(loop, client)
            self._keepers.add(keeper)
            await anext(keeper)
        return client

    async def _keep(self, loop: asyncio.AbstractEventLoop, client: AsyncOpenAI) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._clients.pop(loop, None)
            await client.close()
