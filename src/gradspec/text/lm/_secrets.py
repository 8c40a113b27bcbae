"""Keep keys and headers out of messages, in each form in which a server may repeat them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from urllib.parse import quote

HIDDEN = "[secret]"
#: The shortest word that is taken out of a reply: a shorter one may be a word of the language, as `ollama` is.
LONG = 16
#: The shortest beginning of a secret that is hidden at the end of a text that was cut.
BEGINNING = 4
#: Headers that say who asks and not what answers.
CREDENTIALS = ("authorization", "proxy-authorization", "api-key", "x-api-key")


def check_secrets(key: object, headers: object, *, of: str = "api_key") -> None:
    r"""Refuse what cannot be sent as a key or as headers, without a word of it.

    Args:
        key: the key.
        headers: the headers.
        of: where the key was given.

    Examples:
        >>> check_secrets("sk-from-a-file\n", None)
        Traceback (most recent call last):
        ...
        ValueError: api_key holds a line end or another character that no header can: strip what was read from a file
    """
    if key is not None and not isinstance(key, str):
        raise TypeError(f"api_key is a text, not a value of type {type(key).__name__}")
    if key and not (key.isprintable() and key.isascii()):
        raise ValueError(
            f"{of} holds a line end or another character that no header can: strip what was read from a file"
        )
    if headers is None:
        return
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers map a name to a text, not a value of type {type(headers).__name__}")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"headers map a name to a text; that of {name!r} is of type {type(value).__name__}")


class Secrets:
    """A key and headers that are sent and never shown.

    Examples:
        >>> secrets = Secrets(key="sk-0123456789abcdef", headers={})
        >>> secrets, secrets.redacted("sk-0123456789abcdef is wrong, sk-0123456")
        (Secrets(...), '[secret] is wrong, [secret]')
    """

    def __init__(self, *, key: str | None, headers: Mapping[str, str]) -> None:
        self.key = key
        self.headers = dict(headers)

    def __repr__(self) -> str:
        return "Secrets(...)"

    def fingerprint(self, address: str) -> str | None:
        """Return a hash of the headers that may decide what answers at an address; None if there are none."""
        told = sorted((name.lower(), value) for name, value in self.headers.items())
        told = [pair for pair in told if pair[0] not in CREDENTIALS]
        return sha256(json.dumps([address, told]).encode()).hexdigest() if told else None

    def redacted(self, text: str) -> str:
        """Return a text of an error without any of them, nor the beginning of one at the end of the text."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        for form in self._forms:
            for length in range(min(len(form) - 1, len(text)), BEGINNING - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + HIDDEN
        return text

    def out_of_reply(self, text: str) -> str:
        """Return the text of a reply without those that are too long to be there by chance."""
        for form in self._forms:
            if len(form) >= LONG:
                text = text.replace(form, HIDDEN)
        return text

    @cached_property
    def _forms(self) -> list[str]:
        return sorted(set(self._found()), key=len, reverse=True)

    def _found(self) -> Iterator[str]:
        whole = [secret for secret in (self.key, *self.headers.values()) if secret]
        words = [word for secret in whole for word in secret.split() if len(word) >= LONG]
        for secret in (*whole, *words):
            yield from (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret), quote(secret, safe=""))
