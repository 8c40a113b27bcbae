"""Messages to the help desk of a shop, labelled; and a model of rules that can read a prompt, criticise and rewrite it.

The messages were written for this tutorial. The model stands in for a real one, so that the tutorial needs no network
and gives the same numbers everywhere; it knows nothing about help desks.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradspec.text.lm import Message, RuleModel

DATA = Path(__file__).with_name("data") / "help_desk.tsv"
LABELS = ("account", "billing", "delivery", "returns")
#: Words too common to say what a message is about.
COMMON = re.compile(
    "about|after|although|another|because|have|here|instead|some|than|that|them|then|they|there|these|this|three|were|"
    "what|when|where|which|with|would|your"
)


@dataclass(frozen=True, kw_only=True)
class Example:
    """A message and the department that it belongs to."""

    message: str
    label: str


def load_split(seed: int) -> tuple[list[Example], list[Example]]:
    """Return 48 messages to learn from and 32 others to test on, each label equally often in both."""
    rows = [line.split("\t") for line in DATA.read_text(encoding="utf-8").splitlines()[1:]]
    train, test = [], []
    draw = random.Random(seed)
    for label in LABELS:
        messages = [message for found, message in rows if found == label]
        draw.shuffle(messages)
        examples = [Example(message=message, label=label) for message in messages]
        train += examples[:12]
        test += examples[12:]
    return train, test


def content_words(message: str) -> list[str]:
    """Return the words of a message that may say what it is about, each once."""
    words = re.findall(r"[a-z]{4,}", message.lower())
    return [word for word in dict.fromkeys(words) if not COMMON.fullmatch(word)]


def follow(_: re.Match[str], messages: Sequence[Message]) -> str:
    """Answer a message as the prompt says: by the hints that match, else by the first department it names."""
    prompt, message = messages[0].content, messages[-1].content
    hints = re.findall(r"^- (\w+): (\w+)$", prompt, re.MULTILINE)
    words = content_words(message)
    votes = Counter(label for word, label in hints if word in words)
    first = re.search(r"one of: (\w+)", prompt)
    return votes.most_common(1)[0][0] if votes else first[1] if first else "unknown"


def criticise(match: re.Match[str], _: Sequence[Message]) -> str:
    """Say which words of a message the prompt should connect with the right department."""
    return f"Note for {match['label']}: {', '.join(content_words(match['message']))}."


def rewrite(match: re.Match[str], _: Sequence[Message]) -> str:
    """Add to a prompt the hints that most of the comments ask for and none contradicts."""
    prompt, limit = match["prompt"], int(match["limit"])
    asked = Counter(
        (word, label)
        for label, words in re.findall(r"Note for (\w+): (.*)\.", match["comments"])
        for word in words.split(", ")
    )
    labels = {word: {label for found, label in asked if found == word} for word, _ in asked}
    fresh = [pair for pair in asked if len(labels[pair[0]]) == 1 and f"- {pair[0]}:" not in prompt]
    best = sorted(fresh, key=lambda pair: (-asked[pair], pair))[:limit]
    lines = [prompt, *(f"- {word}: {label}" for word, label in best)]
    return "<new>\n" + "\n".join(lines) + "\n</new>"


#: What each kind of request looks like, as `ops.chat` and the optimizer write it, and who answers it.
MODEL = RuleModel(
    {
        r"(?s)\nuser: (?P<message>[^\n]*)\n</conversation>.*and '(?P<label>\w+)' is right": criticise,
        (
            r"(?s)<text>\n(?P<prompt>.*)\n</text>\n.*<comments>\n(?P<comments>.*)\n</comments>"
            r".*at most (?P<limit>\d+) hints"
        ): rewrite,
        r"": follow,
    }
)
