"""Where the bytes of a call go: the server itself, or a proxy that the environment names."""

from __future__ import annotations

import ssl
from base64 import b64encode
from dataclasses import dataclass, field, replace
from functools import cache
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from gradspec.text.lm._http import written

PORTS = {"http": 80, "https": 443}
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class Route:
    """How a server is reached.

    Examples:
        >>> Route.to("http://localhost:11434/v1").named, Route.to("http://[::1]/v1").endpoint
        ('localhost:11434', '[::1]:80')
    """

    host: str
    port: int
    tls: bool
    #: The proxy's host and port, or None.
    proxy: tuple[str, int] | None = None
    #: What the proxy is told of who asks; as secret as a key.
    credentials: str = field(default="", repr=False)

    @classmethod
    def to(cls, url: str) -> Route:
        """Return the route to an address; `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` count, but not for this host."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or PORTS[parts.scheme]
        proxies = {} if host in LOOPBACK or proxy_bypass(f"{host}:{port}") else getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        route = cls(host=host, port=port, tls=parts.scheme == "https")
        return route if not proxy else route._through(proxy)

    def _through(self, proxy: str) -> Route:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"a proxy has an http address; the environment names one of the kind {parts.scheme!r}")
        said = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            said = f"Basic {b64encode(pair.encode()).decode()}"
        via = (parts.hostname, parts.port or PORTS["http"])
        return replace(self, proxy=via, credentials=said)

    @property
    def endpoint(self) -> str:
        """The host and the port, as a proxy is asked for them."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def named(self) -> str:
        """The host, and the port if it is not the usual one, as the header `Host` says them."""
        return self.endpoint.removesuffix(":443" if self.tls else ":80")

    @property
    def first(self) -> tuple[str, int]:
        """The host and port that a connection is opened to."""
        return self.proxy or (self.host, self.port)

    @property
    def tunnels(self) -> bool:
        """Whether the proxy is asked for a tunnel: it must not see what TLS hides."""
        return self.proxy is not None and self.tls

    @property
    def authorized(self) -> dict[str, str]:
        """The header that a proxy wants."""
        return {"Proxy-Authorization": self.credentials} if self.credentials else {}

    @property
    def tunnel_request(self) -> bytes:
        """What the proxy is asked for a tunnel with."""
        return written("CONNECT", self.endpoint, {"Host": self.endpoint, **self.authorized})

    def target(self, path: str) -> str:
        """Return what a request asks for: the path, or for a proxy without a tunnel the whole address."""
        return f"http://{self.named}{path}" if self.proxy and not self.tls else path


@cache
def tls() -> ssl.SSLContext:
    """Return how a server's certificate is checked: by the system's authorities, or `SSL_CERT_FILE`."""
    return ssl.create_default_context()
