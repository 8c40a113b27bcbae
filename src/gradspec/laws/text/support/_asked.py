"""What a backward asks of models, and whose feedback each answer becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from gradspec.law import TextTrial
from gradspec.laws.text.support._call import Inputs, Said, addressed, heard, once_each, say
from gradspec.text.lm import Completion, Message, complete
from gradspec.text.lm._stand_in import answered_by

#: The longest pass, in requests, of which each answer is replaced in turn.
MOST = 24
#: What replaces an answer.
OTHER = "Another answer."


def asked_in_vain(trial: TextTrial) -> tuple[str, str] | None:
    """Return a Variable that wants no gradient, and what a model is asked all the same for it alone.

    An answer is of use to a Variable if the feedback on it is another once the answer is replaced. A request that is
    made while a Variable wants nothing, and whose answer is of use to that one only, is made in vain.
    """
    places = once_each(trial)
    if len(places) < 2:
        return None
    requests, said = _passed(trial)
    if len(requests) > MOST:
        return None

    @cache
    def users(number: int) -> frozenset[str]:
        try:
            _, other = _passed(trial, replaced=number)
        except Exception:  # what cannot be read is of use, if only to find out
            return frozenset(places)
        return frozenset(place for place in places if other[place] != said[place])

    for left_out in places if requests else ():
        made, _ = _passed(trial, but=left_out)
        for request in requests:
            needed = [n for n, other in enumerate(requests) if other == request and users(n) != {left_out}]
            if made.count(request) > len(needed):
                return left_out, request
    return None


def _passed(trial: TextTrial, *, but: str = "", replaced: int = -1) -> tuple[list[str], Mapping[str, list[Said]]]:
    inputs = Inputs.of(trial, but=but)
    outputs, said = addressed(trial, inputs)
    with _noted(replaced) as requests:
        say(outputs, said)
    return requests, heard(inputs.leaves)


@contextmanager
def _noted(replaced: int) -> Iterator[list[str]]:
    """Note what models are asked in a block, and replace the answer to one of the requests."""
    requests: list[str] = []

    def answer(model: Any, messages: tuple[Message, ...], options: Mapping[str, Any]) -> Completion:
        number = len(requests)
        requests.append("\n".join(message.content for message in messages))
        with answered_by(None):
            completion = complete(model, messages, **options)
        return Completion(text=OTHER) if number == replaced else completion

    with answered_by(answer):
        yield requests
