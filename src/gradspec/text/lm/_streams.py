"""Connections of event loops: each loop has its own, and closes them when it shuts its generators down."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncGenerator

from gradspec.text.lm._errors import ModelConnectionError
from gradspec.text.lm._http import Reply
from gradspec.text.lm._route import Route, tls
from gradspec.text.lm._sockets import IDLE, PIECE

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Streams:
    """The connections to one server, from any number of event loops."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Idle] = weakref.WeakKeyDictionary()

    @property
    def loops(self) -> int:
        """The number of loops that have connections."""
        return len(self._loops)

    async def exchange(self, request: bytes, *, limit: int) -> Reply:
        """Send a request and return its reply; for how long is the caller's to say, by `asyncio.timeout`."""
        idle = await self._of_this_loop()
        stream = idle.take() or await self._connected()
        reader, writer = stream
        reply = Reply(limit=limit)
        try:
            await _exchanged(stream, request, reply)
        except BaseException:
            writer.transport.abort()  # at once: to close TLS in order would wait for the other side
            raise
        if reply.reusable and not reader.at_eof():
            idle.streams.append((stream, time.monotonic()))
        else:
            writer.close()
        return reply

    async def _of_this_loop(self) -> _Idle:
        loop = asyncio.get_running_loop()
        found = self._loops.get(loop)
        if found is None:
            found = self._loops[loop] = _Idle()
            found.keeper = self._keep(loop)
            await anext(found.keeper)
        return found

    async def _keep(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            idle = self._loops.pop(loop, None)
            for (_, writer), _ in idle.streams if idle is not None else ():
                writer.transport.abort()
            await asyncio.sleep(0)  # the sockets are closed in the next turn of the loop

    async def _connected(self) -> Stream:
        route = self._route
        reader, writer = await asyncio.open_connection(
            *route.first, ssl=tls() if route.tls and not route.tunnels else None
        )
        if route.tunnels:
            try:
                answer = Reply(limit=PIECE, bodiless=True)
                await _exchanged((reader, writer), route.tunnel_request, answer)
                if not 200 <= answer.status < 300:
                    raise ModelConnectionError(f"the proxy answered with status {answer.status}")
                await writer.start_tls(tls(), server_hostname=route.host)
            except BaseException:
                writer.transport.abort()
                raise
        return reader, writer


class _Idle:
    """The connections of one loop that wait for a call."""

    def __init__(self) -> None:
        self.streams: list[tuple[Stream, float]] = []
        self.keeper: AsyncGenerator[None, None] | None = None

    def take(self) -> Stream | None:
        while self.streams:
            stream, since = self.streams.pop()
            reader, writer = stream
            if time.monotonic() - since < IDLE and not reader.at_eof() and not writer.is_closing():
                return stream
            writer.transport.abort()
        return None


async def _exchanged(stream: Stream, request: bytes, reply: Reply) -> None:
    reader, writer = stream
    writer.write(request)
    await writer.drain()
    while not reply.feed(await reader.read(PIECE)):
        pass
