"""What `Raises:` lists is what wrong calls get, both ways: no error without a call that shows it, no call unmentioned.

The two are matched by the class of the error and by words, so that nothing is written twice. A line of `Raises:` is cut
into its claims, at commas, semicolons and "or". A wrong call shows a claim if every word of the claim is in its name or
in the message that it gets. What no wrong call can show is in raises.toml, with the reason.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gradspec.functions import FUNCTIONS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.spec import Misuse, Spec
from gradspec.spec._invocation import direct
from gradspec.spec._kinds import maker_of
from gradspec.text import TEXTS

ROOT = Path(__file__).parents[1]
SPECS: tuple[Spec, ...] = (*FUNCTIONS, *OPERATORS, *MODULES, *TEXTS)
specs = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
UNSHOWN = tomllib.loads((Path(__file__).parent / "raises.toml").read_text(encoding="utf-8"))
#: Words without which a claim says the same.
LITTLE = set(
    re.findall(
        r"\w+",
        "a all an and another are as be been both by called do does for from has have holds in is it its needed "
        "neither no nor not of on once one or other than that the them there they to too twice what when where which "
        "with",
    )
)


class Claim(NamedTuple):
    """One error that a docstring lists."""

    owner: str
    error: str
    words: str


def documents(spec: Spec) -> Iterator[tuple[str, Any]]:
    """Yield the documented objects of a spec, and of a class what is called, each with its name."""
    for document in spec.documented:
        yield document.__qualname__, document
        for name in ("apply", "forward") if inspect.isclass(document) else ():
            if name in vars(document):
                yield f"{document.__qualname__}.{name}", getattr(document, name)


def raises_of(document: Any) -> dict[str, str]:
    """Return the section `Raises:` of a docstring: the first sentence by the name of the error."""
    section = re.search(r"^Raises:\n((?:    .*\n)+)", f"{inspect.getdoc(document) or ''}\n", re.MULTILINE)
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section[1] if section else "", re.MULTILINE)
    return {error: " ".join(text.split()).partition(". ")[0].rstrip(".") for error, text in entries}


def claims(spec: Spec) -> Iterator[Claim]:
    """Yield what the documented objects of a spec list; "as `X.apply`" stands for what that lists."""
    for owner, document in documents(spec):
        for error, text in raises_of(document).items():
            for words in re.split(r"[;,()]| or ", text):
                if same := re.fullmatch(r"as `([\w.]+)`", words.strip()):
                    listed = raises_of(NAMED[same[1]])
                    assert error in listed, f"{owner} says that it raises {error} as {same[1]}, which lists none"
                elif content(words):
                    yield Claim(owner, error, words.strip())


def referred(spec: Spec) -> Iterator[Claim]:
    """Yield what objects list to which those of a spec point with "as `X.apply`"."""
    pointed = {n for _, d in documents(spec) for t in raises_of(d).values() for n in re.findall(r"as `([\w.]+)`", t)}
    for other in SPECS:
        yield from (claim for claim in claims(other) if claim.owner in pointed)


#: Every documented object by its name.
NAMED = {name: document for spec in SPECS for name, document in documents(spec)}


def content(text: str) -> set[str]:
    """Return the words of a text that matter, each cut to its stem."""
    return {
        word.removesuffix("s")[:5] or word
        for word in re.findall(r"[a-z_]\w*|\d+(?:n \+ \d+)?", text.lower())
        if word not in LITTLE
    }


def said(spec: Spec, misuse: Misuse) -> str:
    """Return the name of a wrong call and the message that it gets."""
    try:
        (direct(misuse.call, misuse.case) if misuse.call else spec.invocation(misuse.case)).call()
    except misuse.error as error:
        return f"{misuse.case.name} {error}"
    raise AssertionError(f"{spec.name}: the wrong call {misuse.case.name!r} is accepted")


def wrong_calls(spec: Spec) -> list[tuple[str, set[str], str]]:
    """Return class, words and name of each wrong call."""
    calls = spec.raises(maker_of(spec.kind)(0, "cpu")) if spec.raises else ()
    return [(m.error.__name__, content(said(spec, m)), m.case.name) for m in calls]


def shown(claim: Claim, calls: list[tuple[str, set[str], str]]) -> list[str]:
    return [name for error, words, name in calls if error == claim.error and content(claim.words) <= words]


@specs
def test_every_error_that_is_listed_has_a_wrong_call(spec: Spec) -> None:
    calls = wrong_calls(spec)
    wrong = [
        f"{claim.owner}, Raises: {claim.error}: no wrong call of {spec.name} shows {claim.words!r}"
        for claim in claims(spec)
        if not shown(claim, calls) and claim.words not in UNSHOWN.get(claim.error, {})
    ]
    assert wrong == []


@specs
def test_every_wrong_call_has_its_words_in_a_list(spec: Spec) -> None:
    calls, listed = wrong_calls(spec), [*claims(spec), *referred(spec)]
    found = {name for claim in listed for name in shown(claim, calls)}
    names = [name for name, _ in documents(spec)]
    wrong = [
        f"no line of Raises: in {', '.join(names)} says what the wrong call {name!r} is refused for with {error}"
        for error, _, name in calls
        if name not in found
    ]
    assert wrong == []


def test_what_cannot_be_shown_is_still_listed_and_still_not_shown() -> None:
    listed = {claim: spec for spec in SPECS for claim in claims(spec)}
    calls = {spec.name: wrong_calls(spec) for spec in SPECS}
    for error, unshown in UNSHOWN.items():
        for words, reason in unshown.items():
            assert reason.endswith("."), f"tests/raises.toml, {error}: {words!r} has no reason"
            assert all((ROOT / path).exists() for path in re.findall(r"tests/\S+\.py", reason)), reason
            found = [shown(claim, calls[spec.name]) for claim, spec in listed.items() if claim[1:] == (error, words)]
            assert [] in found, f"tests/raises.toml, {error}: nothing lists {words!r} that no wrong call shows"


def test_a_claim_is_read_and_compared_by_its_words() -> None:
    def one() -> None:
        """Do.

        Raises:
            ValueError: `f` requires grad, or does not broadcast to x's shape. On a GPU
                the device asserts it.
            TypeError: as `other`.
        """

    assert raises_of(one) == {
        "ValueError": "`f` requires grad, or does not broadcast to x's shape",
        "TypeError": "as `other`",
    }
    calls = [("ValueError", content("f requires grad, give f.detach()"), "a"), ("TypeError", content("broadcast"), "b")]
    assert shown(Claim("one", "ValueError", "`f` requires grad"), calls) == ["a"]
    assert shown(Claim("one", "ValueError", "does not broadcast"), calls) == []
    assert shown(Claim("one", "ValueError", "`f` is complex"), calls) == []
