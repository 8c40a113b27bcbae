"""HTTP/1.1 as bytes: a request written, a reply read piece by piece. Nothing here touches a socket."""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.text.lm._errors import ModelConnectionError, ReplyError

# Why not http.client: it would take the place of this parser for plain calls only, since it cannot be awaited, and a
# call in a thread cannot be cancelled. There would be two readers of one protocol, each with strictness of its own.
# Its timeout is that of one recv, so a total deadline needs a socket of ours below it; it takes 100 header lines of
# 64 KiB each where we bound the head as a whole; it does not see that an idle connection was closed before it is
# used, nor does it look a name up within a deadline. What would go is the reading of heads and chunks below, a
# hundred lines. Libraries that do all of it, such as h11 and httpx, are not in the standard library.

#: The longest head of a reply, and the most that is read of the body of an error.
HEAD_BYTES = 2**16
ERROR_BYTES = 2**16
BROKE_OFF = "the connection broke off before the reply was whole"


def written(method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    r"""Return a request; a header that would break out of its line is refused, and its value not shown.

    Examples:
        >>> written("POST", "/v1", {"Host": "localhost"}, b"{}")
        b'POST /v1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}'
    """
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers.items():
        if not name.isascii() or any(c in f"{name}{value}" for c in "\r\n\0") or not value.isprintable():
            raise ValueError(f"the header {name!r} holds a character that no header may hold")
        lines.append(f"{name}: {value}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    try:
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("a header or the key holds a character outside of latin-1") from None
    return head + body


class Reply:
    r"""A reply as it comes: `feed` takes what was received, and returns True once the reply is whole.

    Args:
        limit: The most bytes that the body may have. The body of an error is cut at `ERROR_BYTES` instead.
        bodiless: Whether a status of 2xx has no body, as in the answer to CONNECT.

    Examples:
        >>> reply = Reply(limit=100)
        >>> reply.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"), reply.feed(b"\r\n{"), reply.feed(b"}")
        (False, False, True)
        >>> reply.status, bytes(reply.body), reply.reusable
        (200, b'{}', True)
    """

    def __init__(self, *, limit: int, bodiless: bool = False) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        #: Whether the connection may carry another request.
        self.reusable = True
        self._limit, self._bodiless = limit, bodiless
        self._rest = bytearray()
        self._head = True
        self._chunked = False
        self._length: int | None = None
        #: Bytes of the chunk in hand that are still to come, its line end included; 0 before the next chunk.
        self._chunk = 0
        self._trailers = False

    def feed(self, data: bytes) -> bool:
        """Take what was received, `b""` for the end of the connection."""
        self._rest += data
        while self._head:
            if not self._read_head():
                if data:
                    return False
                what = "; its headers were cut" if self._rest else ""
                raise ModelConnectionError(BROKE_OFF + what)
        whole = self._read_chunks() if self._chunked else self._read_body()
        if self._too_long():
            return True
        if (whole and self._rest) or not data:  # more than the reply, or the end of the connection
            self.reusable = False
        if not whole and not data:
            if self._chunked or self._length is not None:
                raise ModelConnectionError(BROKE_OFF)
            return True
        return whole

    def _too_long(self) -> bool:
        """Return whether the body is cut here, since it is that of an error; another one may not be too long."""
        is_error = self.status >= 300
        if len(self.body) <= (min(self._limit, ERROR_BYTES) if is_error else self._limit):
            return False
        if not is_error:
            raise ReplyError(f"the reply is longer than max_reply_bytes={self._limit}")
        del self.body[min(self._limit, ERROR_BYTES) :]
        self.reusable = False
        return True

    def _read_head(self) -> bool:
        end = self._rest.find(b"\r\n\r\n")
        if not b"HTTP/1.".startswith(bytes(self._rest[:7])):
            raise ModelConnectionError("the answer is not in HTTP; is this the address of another service?")
        if end > HEAD_BYTES or (end < 0 and len(self._rest) > HEAD_BYTES):
            raise ReplyError(f"the headers of the reply are longer than {HEAD_BYTES} bytes")
        if end < 0:
            return False
        status, *lines = bytes(self._rest[:end]).decode("latin-1").split("\r\n")
        del self._rest[: end + 4]
        number = status.partition(" ")[2][:3]
        if not (number.isascii() and number.isdigit() and len(number) == 3):
            raise ModelConnectionError(f"the answer is not in HTTP: its first line is {status[:80]!r}")
        self.status = int(number)
        if self.status < 200 and self.status != 101:
            return True  # an answer that only says that the answer will come: the next one is read
        self.headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            name, value = name.strip().lower(), value.strip()
            if name == "content-length" and self.headers.get(name, value) != value:
                raise ModelConnectionError("the answer is not in HTTP: it has two lengths")
            self.headers[name] = value
        self._begin_body(old=status.startswith("HTTP/1.0"))
        return True

    def _begin_body(self, *, old: bool) -> None:
        headers, self._head = self.headers, False
        connection = headers.get("connection", "").lower()
        self.reusable = "close" not in connection and (not old or "keep-alive" in connection)
        coding = headers.get("content-encoding", "identity").lower()
        if coding != "identity" and self.status < 300:
            raise ReplyError(f"the reply is encoded as {coding[:40]}, which was not asked for")
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        if self.status in (101, 204, 304) or (self._bodiless and self.status < 300):
            self._chunked, self._length = False, 0
        elif "content-length" in headers and not self._chunked:
            length = headers["content-length"]
            if not (length.isascii() and length.isdigit() and len(length) <= 18):
                raise ModelConnectionError(f"the answer is not in HTTP: its length is {length[:80]!r}")
            self._length = int(length)

    def _read_body(self) -> bool:
        wanted = len(self._rest) if self._length is None else self._length - len(self.body)
        self.body += self._rest[:wanted]
        del self._rest[:wanted]
        return self._length is not None and len(self.body) == self._length

    def _read_chunks(self) -> bool:
        while self._rest:
            if self._chunk:
                piece = self._rest[: self._chunk]
                # The two last bytes of a chunk are its line end, which may come later.
                self.body += piece[: max(0, self._chunk - 2)]
                self._chunk -= len(piece)
                del self._rest[: len(piece)]
                if self._too_long():
                    return True
                continue
            line, found, _ = self._rest.partition(b"\r\n")
            if len(line) > HEAD_BYTES:
                raise ReplyError(f"the headers of the reply are longer than {HEAD_BYTES} bytes")
            if not found:
                return False
            del self._rest[: len(line) + 2]
            if self._trailers:
                if not line:
                    return True
                continue
            size = bytes(line).partition(b";")[0].strip()
            try:
                length = int(size, 16) if len(size) <= 15 and size.isalnum() else -1
            except ValueError:
                length = -1
            if length < 0:
                raise ModelConnectionError(f"the answer is not in HTTP: a chunk's length is {size[:20]!r}")
            self._trailers = length == 0
            self._chunk = length + 2 if length else 0
        return False
