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
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: A fault: `reset`, `hang`, `truncated`, `malformed`, `not_json`, `drip`, a status, or (status, {header: value}).
Fault = str | int | tuple[int, dict[str, str]]


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
    ) -> None:
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

    def __enter__(self) -> Server:
        self.http = _Http(("127.0.0.1", 0), _Handler)
        self.http.owner = self
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
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

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

    def do_POST(self) -> None:
        server = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests.append(body)
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
                for _ in range(10_000):
                    if server.stopped.wait(0.05):
                        break
                    self.wfile.write(b" ")
                    self.wfile.flush()
                self.close_connection = True
            case int(status):
                self.send(status, error(status))
            case (status, headers):
                self.send(status, error(status), headers=headers)

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
