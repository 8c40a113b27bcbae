"""Bytes that are no reply in HTTP, or a longer one than there may be: one error that says what came."""

import pytest

from gradspec.text.lm import ModelConnectionError, ReplyError
from gradspec.text.lm._http import ERROR_BYTES, HEAD_BYTES, Reply

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
FAILED = b"HTTP/1.1 500 Oh\r\n"


@pytest.mark.parametrize(
    ("sent", "error", "message"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", ModelConnectionError, "is this the address of another service?"),
        (b"HTTP/1.1 fine\r\n\r\n", ModelConnectionError, "its first line is 'HTTP/1.1 fine'"),
        (b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n", ModelConnectionError, "its first line is 'HTTP/1.1 ²²² OK'"),
        (OK + b"Content-Length: two\r\n\r\n", ModelConnectionError, "its length is 'two'"),
        (OK + b"Content-Length: -1\r\n\r\n", ModelConnectionError, "its length is '-1'"),
        (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", ModelConnectionError, "it has two lengths"),
        (OK + b"Content-Encoding: br\r\n\r\n", ReplyError, "encoded as br, which was not asked for"),
        (CHUNKED + b"two\r\n{}\r\n", ModelConnectionError, "a chunk's length is b'two'"),
        (CHUNKED + b"-2\r\n{}\r\n", ModelConnectionError, "a chunk's length is b'-2'"),
        (CHUNKED + b"1" * 16 + b"\r\n", ModelConnectionError, "a chunk's length is b'1111111111111111'"),
        (CHUNKED + b"1" * (HEAD_BYTES + 1), ReplyError, f"longer than {HEAD_BYTES} bytes"),
        (OK + b"A: " + b"a" * HEAD_BYTES, ReplyError, f"longer than {HEAD_BYTES} bytes"),
        (OK + b"Content-Length: 9\r\n\r\n123456789", ReplyError, "longer than max_reply_bytes=8"),
        (CHUNKED + b"9\r\n123456789\r\n", ReplyError, "longer than max_reply_bytes=8"),
    ],
)
def test_what_is_no_reply_is_one_error_that_shows_it(sent, error, message):
    with pytest.raises(error) as raised:
        Reply(limit=8).feed(sent)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("cut", [OK[:9], OK, CHUNKED, CHUNKED + b"2\r\n{", OK + b"Content-Length: 2\r\n\r\n{"])
def test_a_reply_that_is_cut_is_not_a_shorter_one(cut):
    reply = Reply(limit=8)

    assert reply.feed(cut) is False
    with pytest.raises(ModelConnectionError, match="broke off before the reply was whole"):
        reply.feed(b"")


@pytest.mark.parametrize("head", [b"Transfer-Encoding: chunked\r\n\r\n20000\r\n", b"Content-Length: 131072\r\n\r\n"])
def test_the_body_of_an_error_is_cut_and_its_connection_not_used_again(head):
    reply = Reply(limit=1 << 20)

    assert reply.feed(FAILED + head + b"x" * (ERROR_BYTES + 1)) is True
    assert (reply.status, len(reply.body), reply.reusable) == (500, ERROR_BYTES, False)


def test_a_chunk_may_come_byte_by_byte_and_have_an_extension_and_a_trailer():
    reply = Reply(limit=8)
    sent = CHUNKED + b"2;name=value\r\n{}\r\n0\r\nA: b\r\n\r\n"

    assert [reply.feed(bytes([byte])) for byte in sent] == [False] * (len(sent) - 1) + [True]
    assert (bytes(reply.body), reply.reusable) == (b"{}", True)
