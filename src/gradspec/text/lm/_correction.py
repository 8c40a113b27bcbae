"""The correction that a model is sent if its reply cannot be used."""

from __future__ import annotations

from gradspec.text.lm._model import Message


def correction(text: str, problems: list[str]) -> tuple[Message, Message]:
    """Return its reply, and a message that says what is wrong with it."""
    wrong = "\n".join(f"- {problem}" for problem in problems[:20])
    return (
        Message(role="assistant", content=text),
        Message(role="user", content=f"This reply cannot be used:\n{wrong}\nAnswer again, with the JSON alone."),
    )
