"""Plain connections: kept open between calls, and each call within its time as a whole."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import time
from collections import deque

from gradspec.text.lm._errors import ModelConnectionError, ModelTimeoutError
from gradspec.text.lm._http import Reply
from gradspec.text.lm._route import Route, tls

PIECE = 2**16
#: Seconds after which an idle connection is not used again: somebody on the way may have forgotten it.
IDLE = 30.0
LATE = "did not answer in time"


class Sockets:
    """The connections to one server, for any number of threads; the one used last is used first."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._idle: deque[tuple[socket.socket, float]] = deque()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def open(self) -> int:
        """The number of connections that wait for a call."""
        return len(self._idle)

    def close(self) -> None:
        """Close the connections that wait for a call."""
        with self._lock:
            idle, self._idle = self._idle, deque()
        for connection, _ in idle:
            connection.close()

    def exchange(self, request: bytes, *, until: float, limit: int) -> Reply:
        """Send a request and return its reply, by `until`, a time of `time.monotonic`."""
        connection = self._waiting() or self._connected(until)
        reply = Reply(limit=limit)
        try:
            _exchanged(connection, request, reply, until)
        except BaseException:
            connection.close()
            raise
        if not reply.reusable:
            connection.close()
            return reply
        now, old = time.monotonic(), []
        with self._lock:
            self._idle.append((connection, now))
            while len(self._idle) > 1 and now - self._idle[0][1] > IDLE:
                old.append(self._idle.popleft()[0])
        for connection in old:
            connection.close()
        return reply

    def _waiting(self) -> socket.socket | None:
        """Return an idle connection that the server has not closed."""
        while True:
            if self._process != os.getpid():  # a fork: these connections are still the parent's
                self.close()
                self._process = os.getpid()
            with self._lock:
                if not self._idle:
                    return None
                connection, since = self._idle.pop()
            if time.monotonic() - since < IDLE and not _readable(connection):
                return connection
            connection.close()

    def _connected(self, until: float) -> socket.socket:
        route = self._route
        connection = _opened(*route.first, until)
        try:
            if route.tunnels:
                answer = Reply(limit=PIECE, bodiless=True)
                _exchanged(connection, route.tunnel_request, answer, until)
                if not 200 <= answer.status < 300:
                    raise ModelConnectionError(f"the proxy answered with status {answer.status}")
            if route.tls:
                connection.settimeout(_left(until))
                return tls().wrap_socket(connection, server_hostname=route.host)
        except BaseException:
            connection.close()
            raise
        return connection


def _exchanged(connection: socket.socket, request: bytes, reply: Reply, until: float) -> None:
    rest = memoryview(request)
    try:
        while rest:
            connection.settimeout(_left(until))
            rest = rest[connection.send(rest) :]
    except (BrokenPipeError, ConnectionResetError):
        pass  # it may have answered, and not read everything: a request that is too long for it, say
    whole = False
    while not whole:
        connection.settimeout(_left(until))
        whole = reply.feed(connection.recv(PIECE))


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise ModelTimeoutError(LATE)
    return left


def _opened(host: str, port: int, until: float) -> socket.socket:
    """Connect to the first address of a host that answers."""
    failed: OSError | None = None
    for family, kind, protocol, _, address in _addresses(host, port, until):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(_left(until))
            connection.connect(address)
            # Without this a body in two packets waits 40 ms for the acknowledgement of the first.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            failed = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    if failed is None:
        raise ModelConnectionError(f"the host {host} has no address")
    try:
        raise failed
    finally:
        failed = None  # the error holds this frame


def _addresses(host: str, port: int, until: float) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    """Look a name up, in a thread: the system's own limit on that is longer than most timeouts."""
    found: list[object] = []

    def look() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.append(error)

    if host.replace(".", "").isdigit() or ":" in host:
        look()
    else:
        thread = threading.Thread(target=look, name="gradspec.text.lm look-up", daemon=True)
        thread.start()
        thread.join(_left(until))
    if not found:
        raise ModelTimeoutError(LATE)
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]  # type: ignore[return-value]  # what getaddrinfo returns


def _readable(connection: socket.socket) -> bool:
    """Return whether something is to be read, which on an idle connection is its end."""
    if isinstance(connection, ssl.SSLSocket) and connection.pending():
        return True
    if hasattr(select, "poll"):
        look = select.poll()  # select takes no descriptor above 1023
        look.register(connection, select.POLLIN | select.POLLHUP | select.POLLERR)
        return bool(look.poll(0))
    return bool(select.select([connection], [], [], 0)[0])
