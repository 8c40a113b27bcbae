"""A loopback server of OpenAI's chat-completions protocol, slow and faulty as a test tells it to be.

    with Server(delay=0.1) as server:
        model = OpenAIModel("echo", base_url=server.url)

It answers with a hash of the request's messages, or with what `reply` makes of the request's body. `faults` is a list
that the requests take from, in the order in which they come; when it is empty they are answered. What a client paid for
is in `paid`: the bodies of the requests that a whole and readable reply was sent to.
"""

from __future__ import annotations

import hashlib
import json
import random
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: A fault: a name that `answer` knows, a status, (status, {header: value}), or (status, body).
Fault = str | int | tuple[int, dict[str, str]] | tuple[int, bytes]
#: What the fault `huge_error` would send, if it were read.
HUGE = 64 * 2**20


def digest(body: dict) -> str:
    """Answer with a hash of the messages."""
    return hashlib.sha256(json.dumps(body["messages"], sort_keys=True).encode()).hexdigest()


class Server:
    """A server on a free port of the loopback, in threads of this process."""

    def __init__(
        self,
        *,
        delay: float | Callable[[], float] = 0.0,
        reply: Callable[[dict], str] = digest,
        faults: list[Fault] | None = None,
        usage: bool = True,
        certificate: tuple[str, str] | None = None,
    ) -> None:
        self.certificate = certificate
        self.delay = delay
        self.reply = reply
        self.faults = list(faults or [])
        self.usage = usage
        self.requests: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.paid: list[dict] = []
        self.in_flight = self.peak = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        #: Where the fault `redirect` points to, and the bytes that `huge_error` could send.
        self.elsewhere = ""
        self.longest = 2**30
        self.sent = 0
        #: The clients' ports: one for each connection that brought a request.
        self.ports: set[int] = set()
        self.targets: list[str] = []

    def __enter__(self) -> Server:
        self.http = _Http(("127.0.0.1", 0), _Handler)
        self.http.owner = self
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    @property
    def url(self) -> str:
        """The address; it stays readable after the end, when nothing listens there."""
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self.http.server_address[1]}/v1"

    def next_fault(self) -> Fault | None:
        with self.lock:
            return self.faults.pop(0) if self.faults else None


def random_delay(seed: int, longest: float) -> Callable[[], float]:
    """Return delays up to `longest` seconds, drawn one a request."""
    draw = random.Random(seed)
    return lambda: draw.uniform(0.0, longest)


def refused_url() -> str:
    """Return an address at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    owner: Server

    def handle_error(self, request, client_address):  # a client that went away is what the tests are about
        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one write a reply: header and body in two packets cost 40 ms of delayed acknowledgement

    def do_CONNECT(self) -> None:
        """Be a proxy's tunnel to the port that is asked for, on the loopback."""
        server = self.server.owner
        server.targets.append(self.path)
        server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if server.next_fault() is not None:
            self.send(403, b"no")
            return
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.wfile.flush()
        self.close_connection = True
        with socket.create_connection(("127.0.0.1", int(self.path.rpartition(":")[2]))) as there:
            ways = {self.connection: there, there: self.connection}
            while not server.stopped.is_set():
                for one in select.select([*ways], [], [], 0.05)[0]:
                    data = one.recv(2**16)
                    if not data:
                        return
                    ways[one].sendall(data)

    def do_POST(self) -> None:
        server = self.server.owner
        if int(self.headers["Content-Length"]) > server.longest:
            self.send(413, error(413), headers={"Connection": "close"})
            self.close_connection = True
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests.append(body)
            server.ports.add(self.client_address[1])
            server.targets.append(self.path)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            server.in_flight += 1
            server.peak = max(server.peak, server.in_flight)
        try:
            time.sleep(server.delay() if callable(server.delay) else server.delay)
            fault = server.next_fault()
        finally:
            with server.lock:
                server.in_flight -= 1
        self.answer(server, body, fault)

    def answer(self, server: Server, body: dict, fault: Fault | None) -> None:
        match fault:
            case None:
                content = json.dumps(completion(body, server.reply(body), server.usage)).encode()
                with server.lock:
                    server.paid.append(body)
                self.send(200, content)
            case "reset":
                # Linger for no time: closing sends RST.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
            case "hang":
                server.stopped.wait(60)
                self.close_connection = True
            case "truncated":
                content = json.dumps(completion(body, server.reply(body), server.usage)).encode()
                self.send(200, content[: len(content) // 2], length=len(content))
                self.close_connection = True
            case "malformed":
                content = json.dumps(completion(body, server.reply(body), server.usage)).encode()
                self.send(200, content[: len(content) // 2])
            case "not_json":
                self.send(200, b"<html>Welcome to the captive portal</html>", kind="text/html")
            case "drip":
                self.send(200, b"", length=10_000)
                self.drip(b" " * 10_000)
            case "drip_error":
                self.send(400, b"", length=10_000)
                self.drip(b" " * 10_000)
            case "drip_head":
                self.drip(b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 10_000)
            case "drip_status":
                self.drip(b"HTTP/1.1 200 " + b"O" * 10_000)
            case "drip_informed":  # each answer that is not the last one is whole
                self.drip(*[b"HTTP/1.1 102 Processing\r\n\r\n"] * 10_000)
            case "drip_chunks":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                self.drip(*[b"1\r\n \r\n"] * 10_000)
            case "huge_error":
                self.send(400, b"", length=HUGE)
                while server.sent < HUGE and not server.stopped.is_set():
                    self.wfile.write(b"x" * 2**20)
                    server.sent += 2**20
                self.close_connection = True
            case "huge_head":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-Much: more and more\r\n" * 100_000 + b"\r\n")
                self.close_connection = True
            case "chunked":
                content = json.dumps(completion(body, server.reply(body), server.usage)).encode()
                with server.lock:
                    server.paid.append(body)
                head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                pieces = [content[i : i + 7] for i in range(0, len(content), 7)]
                self.wfile.write(
                    head + b"".join(b"%x;x=y\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\nA: b\r\n\r\n"
                )
            case "cut_chunks":
                self.wfile.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"id\r\n')
                self.close_connection = True
            case "until_close":
                content = json.dumps(completion(body, server.reply(body), server.usage)).encode()
                with server.lock:
                    server.paid.append(body)
                self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + content)
                self.close_connection = True
            case "no_http":
                self.wfile.write(b"220 mail.example ESMTP\r\n")
                self.close_connection = True
            case "gzip":
                self.send(200, b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"})
            case "two_lengths":
                self.send(200, b"{}", headers={"Content-Length": "7"})
                self.close_connection = True
            case "shut":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            case "redirect":
                self.send(307, b"", headers={"Location": server.elsewhere})
            case int(status):
                self.send(status, error(status))
            case (status, bytes(content)):
                self.send(status, content)
            case (status, headers):
                self.send(status, error(status), headers=headers)

    def drip(self, *pieces: bytes) -> None:
        """Send a byte, or a piece, every 0.05 s, so that no wait for a single one is long."""
        server = self.server.owner
        for piece in pieces if len(pieces) > 1 else [pieces[0][i : i + 1] for i in range(len(pieces[0]))]:
            if server.stopped.wait(0.05):
                break
            self.wfile.write(piece)
            self.wfile.flush()
        self.close_connection = True

    def send(self, status, content, *, length=None, kind="application/json", headers=None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, *args: object) -> None:
        pass


def completion(body: dict, text: str, usage: bool = True) -> dict:
    """Return a reply in OpenAI's form."""
    said = sum(len(m["content"].split()) for m in body["messages"])
    counted = {"prompt_tokens": said, "completion_tokens": len(text.split())}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        **({"usage": {**counted, "total_tokens": sum(counted.values())}} if usage else {}),
    }


def error(status: int) -> bytes:
    """Return an error in OpenAI's form."""
    said = {"message": f"scripted {status}", "type": "scripted", "param": None, "code": None}
    return json.dumps({"error": said}).encode()


def main(delay: str) -> None:
    """Serve until the input ends: `python server.py SECONDS` prints the address first."""
    with Server(delay=float(delay)) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
