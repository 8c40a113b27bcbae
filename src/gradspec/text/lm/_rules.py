"""A model made of rules: offline, deterministic, for examples and tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from gradspec.text.lm._errors import ReplyError
from gradspec.text.lm._model import Completion, Message, Messages, Usage, as_messages

#: What a rule answers: a text, in which `\1` is the first group, or a function of the match and the messages.
Answer: TypeAlias = str | Callable[[re.Match[str], Sequence[Message]], str]


class RuleModel:
    r"""Answer by the first rule whose pattern occurs in the conversation: an embedded, deterministic, offline model.

    A pattern is looked for in the last message, and in the whole conversation if it begins with `(?s)`: messages are
    joined there as `role: content`, one a line. A token is a word.

    Args:
        rules: From a regular expression to a text, in which `\1` is its first group, or to a function of the match and
            the messages that returns a text. In order; the first that matches answers.
        default: The answer where no rule matches; without it `ReplyError` is raised.

    Examples:
        >>> model = RuleModel({r"capital of (\w+)": r"I have never been to \1."}, default="Pardon?")
        >>> model("What is the capital of France?").text
        'I have never been to France.'
        >>> model("Hello").text
        'Pardon?'
    """

    def __init__(self, rules: Mapping[str, Answer], *, default: str | None = None) -> None:
        if not isinstance(rules, Mapping):
            raise TypeError(f"rules map a regular expression to an answer, {{'hello': 'Hi.'}}; not {rules!r}")
        self._rules = [(_compiled(pattern), answer) for pattern, answer in rules.items()]
        for pattern, answer in self._rules:
            _check_answer(pattern, answer)
        self._default = default

    @property
    def identity(self) -> dict[str, Any]:
        """The rules, by which a cache knows the model, where they are texts."""
        if any(callable(answer) for _, answer in self._rules):
            raise TypeError("a RuleModel whose answers are functions needs Client(..., name=...) to be cached")
        return {"rules": [[pattern.pattern, answer] for pattern, answer in self._rules], "default": self._default}

    def __call__(self, messages: Messages, **options: Any) -> Completion:
        """Answer by the first rule that matches; options change nothing."""
        said = as_messages(messages)
        text = self._answer(said)
        words = sum(len(m.content.split()) for m in said)
        return Completion(text=text, usage=Usage(prompt_tokens=words, completion_tokens=len(text.split())))

    def _answer(self, messages: Sequence[Message]) -> str:
        whole = "\n".join(f"{m.role}: {m.content}" for m in messages)
        for pattern, answer in self._rules:
            match = pattern.search(whole if pattern.pattern.startswith("(?s)") else messages[-1].content)
            if match:
                return answer(match, messages) if callable(answer) else match.expand(answer)
        if self._default is None:
            raise ReplyError(f"no rule matches {messages[-1].content[:200]!r}; add one, or a default")
        return self._default


def _check_answer(pattern: re.Pattern[str], answer: object) -> None:
    if not isinstance(answer, str) and not callable(answer):
        raise TypeError(f"the answer of a rule is a text or a function that returns one, not {answer!r}")
    try:
        if isinstance(answer, str):
            pattern.sub(answer, "")
    except (re.error, IndexError) as error:
        raise ValueError(f"the answer {answer!r} of the rule {pattern.pattern!r}: {error}") from None


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(f"the rule {pattern!r} is not a regular expression: {error}") from None
