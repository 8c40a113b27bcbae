"""The text of a cassette: what was asked and what came of it, to be read, reviewed and compared line by line."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradspec.text._scheduling._position import Position
from gradspec.text.lm import _errors
from gradspec.text.lm._model import Completion, Message, Usage
from gradspec.text.lm._request import canonical

HEAD = "gradspec cassette 1"
#: Options that are never written out, whoever takes them.
SECRET = re.compile(r"api_?key|authorization|headers?$|password|secret|credential|(^|_)token$", re.IGNORECASE)
#: What a completion holds beside its text and its usage, and the word of its line.
WORDS = {"stop": "finish_reason", "served": "model", "id": "id", "value": "value"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One call of a run."""

    #: Where in the program it is made.
    position: Position
    #: What was asked, in lines.
    request: tuple[str, ...]
    #: The names of the errors after which it was asked again.
    retried: tuple[str, ...]
    #: What came of it.
    outcome: Completion | Exception

    @property
    def text(self) -> str:
        """The lines of the call."""
        retried = [f"retried {name}" for name in self.retried]
        return "\n".join([f"call {shown(self.position)}", *self.request, *retried, *_outcome(self.outcome), "end", ""])


def shown(position: Position) -> str:
    """Return a position as people count, without the levels at which there is one thing only.

    Examples:
        >>> shown((3, 0, 1, 0)), shown((0, 0))
        ('4.1.2', '1')
    """
    return ".".join(str(number + 1) for number in shortened(position))


def shortened(position: Position) -> Position:
    """Return a position without zeros at its end."""
    length = len(position)
    while length > 1 and not position[length - 1]:
        length -= 1
    return position[:length]


def request_lines(
    name: str,
    address: str | None,
    messages: Iterable[Message],
    options: Mapping[str, Any],
    schema: Mapping[str, Any] | None,
    sample: int,
) -> tuple[str, ...]:
    r"""Return what is asked, in lines; an option that may be a secret is named and not said.

    Examples:
        >>> messages = [Message(role="user", content="Is 7\nprime?")]
        >>> print(*request_lines("gpt", None, messages, {"api_key": "sk-1"}, None, 0), sep="\n")
        model "gpt"
        options {"api_key":"[secret]"}
        user
        | Is 7
        | prime?
    """
    lines = [f"model {json.dumps(name)}" + ("" if address is None else f" at {json.dumps(address)}")]
    if options:
        lines.append(f"options {canonical(_without_secrets(options))}")
    if schema is not None:
        lines.append(f"schema {canonical(schema)}")
    if sample:
        lines.append(f"sample {sample}")
    for message in messages:
        lines += [message.role, *_written(message.content)]
    return tuple(lines)


def parsed(text: str, path: str) -> tuple[list[Entry], str | None]:
    """Return the calls in a text, and how the run ended; None if it did not: the last call may be torn then.

    Raises:
        ValueError: it is not the text of a cassette; the message names the line.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[0] != HEAD:
        if HEAD.startswith(text):
            return [], None  # killed before it had begun
        raise ValueError(f"{path} is not a cassette of this version: its first line is not {HEAD!r}")
    entries: list[Entry] = []
    at = 1
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        if lines[at].startswith("run of ") and at < len(lines) - 1:
            if not re.fullmatch(rf"run of {len(entries)} calls?(, ended by \w+)?", lines[at]):
                raise ValueError(f"{path}, line {at + 1} says {lines[at]!r}, and the file holds {len(entries)}")
            return entries, lines[at]
        try:
            end = lines.index("end", at)
        except ValueError:
            return entries, None
        if end == len(lines) - 1:
            return entries, None  # not even its last line is whole
        try:
            entries.append(_entry(lines[at:end]))
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{path}, lines {at + 1} to {end + 1} are not a call of a cassette: {error}") from None
        at = end + 1
    return entries, None


def ending(calls: int, error: BaseException | None) -> str:
    """Return the last line: a file that was cut has none."""
    by = "" if error is None else f", ended by {type(error).__name__}"
    return f"run of {calls} call{'' if calls == 1 else 's'}{by}"


def _entry(lines: Sequence[str]) -> Entry:
    word, _, position = lines[0].partition(" ")
    if word != "call":
        raise ValueError(f"it begins with {lines[0]!r}, and a call with 'call 1'")
    first = next(at for at, line in enumerate([*lines, "error"]) if line.split(" ")[0] in ("retried", "reply", "error"))
    after = next(at for at in range(first, len(lines) + 1) if at == len(lines) or not lines[at].startswith("retried "))
    return Entry(
        position=tuple(int(number) - 1 for number in position.split(".")),
        request=tuple(lines[1:first]),
        retried=tuple(line.removeprefix("retried ") for line in lines[first:after]),
        outcome=_read_outcome(lines[after:]),
    )


def _outcome(outcome: Completion | Exception) -> Iterator[str]:
    if isinstance(outcome, Completion):
        yield "reply cached" if outcome.cached else "reply"
        yield from _written(outcome.text)
        if outcome.usage is not None:
            yield f"usage {outcome.usage.prompt_tokens} {outcome.usage.completion_tokens}"
        for word, name in WORDS.items():
            if getattr(outcome, name) is not None:
                yield f"{word} {json.dumps(getattr(outcome, name))}"
        return
    yield f"error {type(outcome).__name__}"
    yield from _written(str(outcome))
    if isinstance(outcome, _errors.StatusError):
        yield f"status {outcome.status} {json.dumps(outcome.retry_after)}"


def _read_outcome(lines: Sequence[str]) -> Completion | Exception:
    if not lines:
        raise ValueError("it has neither a reply nor an error")
    kind, _, name = lines[0].partition(" ")
    said = [line for line in lines[1:] if _is_text(line)]
    text = "\n".join(map(_read, said))
    rest = dict(line.partition(" ")[::2] for line in lines[1:] if not _is_text(line))
    if kind == "error":
        return _error(name, text, rest.get("status"))
    if not said:
        raise ValueError("its reply has no text; an empty one is the line '|'")
    usage = [int(tokens) for tokens in rest.pop("usage", "").split()]
    return Completion(
        text=text,
        usage=Usage(prompt_tokens=usage[0], completion_tokens=usage[1]) if usage else None,
        cached=name == "cached",
        **{WORDS[word]: json.loads(value) for word, value in rest.items()},
    )


def _error(name: str, text: str, status: str | None) -> Exception:
    if status is not None:
        code, after = status.split(" ")
        return _errors.StatusError(text, status=int(code), retry_after=json.loads(after))
    kind = getattr(_errors, name, getattr(builtins, name, None))
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            error = kind(text)
        except TypeError:  # such as UnicodeDecodeError, which takes more than a text
            pass
        else:
            if str(error) == text:  # a KeyError shows the repr of what it is given
                return error
    return _errors.ModelError(f"{name}: {text}")


def _written(text: str) -> list[str]:
    # What an editor would change, or not show, is written as JSON.
    return [_line(line) for line in text.split("\n")]


def _line(line: str) -> str:
    plain = line.replace("\t", "").isprintable() and line == line.rstrip()
    return (f"| {line}" if line else "|") if plain else json.dumps(line)


def _is_text(line: str) -> bool:
    return line.startswith(("|", '"'))


def _read(line: str) -> str:
    if line.startswith("|"):
        return line[2:]
    text = json.loads(line)
    if not isinstance(text, str):
        raise TypeError(f"{line!r} is not a text")
    return text


def _without_secrets(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {
            name: "[secret]" if SECRET.search(str(name)) else _without_secrets(value) for name, value in data.items()
        }
    return [_without_secrets(value) for value in data] if isinstance(data, list | tuple) else data
