"""How a server is reached: through TLS, and through the proxies that the environment names."""

import asyncio
import shutil
import subprocess

import pytest

from gradspec.text.lm import ModelConnectionError, OpenAIModel
from gradspec.text.lm._route import Route, tls
from text.lm.server import Server

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

both_worlds = pytest.mark.parametrize(
    "call", [OpenAIModel.__call__, lambda *a: asyncio.run(OpenAIModel.acall(*a))], ids=["plainly", "asynchronously"]
)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    files = str(folder / "cert.pem"), str(folder / "key.pem")
    names = "subjectAltName=DNS:model.example,IP:127.0.0.1"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-addext"]
    subprocess.run([*make, names, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


@pytest.fixture
def trusted(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    tls.cache_clear()
    yield certificate
    tls.cache_clear()


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="it makes a certificate by openssl")


@both_worlds
def test_a_proxy_is_given_the_whole_address(call, monkeypatch):
    with Server() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1").replace("//", "//me:p%40ss@"))
        call(OpenAIModel("echo", base_url="http://model.example:8080/v1", api_key="k"), "hi")
    assert proxy.targets == ["http://model.example:8080/v1/chat/completions"]
    assert proxy.headers[0]["host"] == "model.example:8080"
    assert proxy.headers[0]["proxy-authorization"] == "Basic bWU6cEBzcw=="


@both_worlds
def test_the_loopback_and_what_no_proxy_names_are_reached_directly(call, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "inside.example")
    with Server() as server:
        assert call(OpenAIModel("echo", base_url=server.url), "hi").text
    assert Route.to("http://inside.example/v1").proxy is None
    assert Route.to("http://outside.example/v1").proxy == ("127.0.0.1", 1)


@needs_openssl
@both_worlds
def test_a_server_with_tls(call, trusted):
    with Server(certificate=trusted, reply=lambda body: "safe") as server:
        model = OpenAIModel("echo", base_url=server.url, api_key="k")
        assert [call(model, "hi").text for _ in range(2)] == ["safe"] * 2


@needs_openssl
@both_worlds
def test_a_server_that_cannot_prove_who_it_is_gets_nothing(call, certificate):
    with Server(certificate=certificate) as server:
        with pytest.raises(ModelConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            call(OpenAIModel("echo", base_url=server.url, api_key="k", timeout=5), "hi")
        assert server.requests == []


@needs_openssl
@both_worlds
def test_what_tls_hides_no_proxy_sees(call, trusted, monkeypatch):
    with Server() as proxy, Server(certificate=trusted, reply=lambda body: "safe") as server:
        monkeypatch.setenv("https_proxy", proxy.url.removesuffix("/v1").replace("//", "//me:pass@"))
        port = server.http.server_address[1]
        model = OpenAIModel("echo", base_url=f"https://model.example:{port}/v1", api_key="secret", timeout=5)
        assert call(model, "hi").text == "safe"
        assert proxy.targets == [f"model.example:{port}"]
        assert "secret" not in str(proxy.headers)
        assert "proxy-authorization" in proxy.headers[0]
        assert "proxy-authorization" not in server.headers[0]


@both_worlds
def test_a_proxy_that_refuses_is_named(call, monkeypatch):
    with Server(faults=[403]) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.removesuffix("/v1"))
        with pytest.raises(ModelConnectionError, match="the proxy answered with status 403"):
            call(OpenAIModel("echo", base_url="https://model.example/v1", api_key="k", timeout=5), "hi")


def test_a_name_that_nobody_has_is_named():
    with pytest.raises(ModelConnectionError, match="cannot be reached"):
        OpenAIModel("echo", base_url="http://name.invalid/v1", timeout=20)("hi")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "https://127.0.0.1:443", "http://"])
def test_a_proxy_of_another_kind_is_refused_before_anything_is_sent(monkeypatch, proxy):
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(ValueError, match="a proxy has an http address; the environment names one of the kind"):
        Route.to("http://models.example/v1")
