"""How much of a page is torch's own documentation, copied: the share of its words inside 5-grams of torch's docstrings.

`python tests/boilerplate.py` writes the hashes of those 5-grams from the torch that is installed.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

N = 5
HASHES = Path(__file__).parent / "site" / "torch_ngrams.json"


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation and markup: `ctx.save()` is `ctx save`."""
    roles_removed = re.sub(r":[\w:]+:(?=`)", " ", text)
    return re.findall(r"[a-z0-9_]+", roles_removed.lower())


def ngrams(text: str) -> list[str]:
    """Return the hash of each run of five words, in order."""
    tokens = words(text)
    runs = (" ".join(tokens[i : i + N]) for i in range(len(tokens) - N + 1))
    return [hashlib.sha256(run.encode()).hexdigest()[:8] for run in runs]


def known() -> dict[str, str]:
    """Return the committed hashes, each with the member of torch whose docstring it is from."""
    members = json.loads(HASHES.read_text(encoding="utf-8"))["members"]
    return {gram: member for member, grams in members.items() for gram in grams.split()}


def copied(text: str, grams: Iterable[str]) -> list[bool]:
    """Return for each word of a text whether it stands inside a 5-gram that is one of `grams`."""
    grams = frozenset(grams)
    marks = [False] * len(words(text))
    for start, gram in enumerate(ngrams(text)):
        if gram in grams:
            marks[start : start + N] = [True] * N
    return marks


def share(text: str, grams: Iterable[str]) -> float:
    """Return the share of the words of a text that are copies, from 0 to 1."""
    marks = copied(text, grams)
    return sum(marks) / len(marks) if marks else 0.0


def passages(text: str, grams: Iterable[str]) -> list[str]:
    """Return each run of copied words: what a failing test shows."""
    marked = (word if mark else "|" for word, mark in zip(words(text), copied(text, grams), strict=True))
    return [run.strip() for run in " ".join(marked).split("|") if run.strip()]


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstrings of torch that autodoc and autosummary copy into the pages of a subclass."""
    import torch

    for path, cls in {"torch.autograd.Function": torch.autograd.Function, "torch.nn.Module": torch.nn.Module}.items():
        for name in sorted({name for base in cls.__mro__[:-1] for name in vars(base) if not name.startswith("_")}):
            if doc := inspect.getdoc(getattr(cls, name, None)):
                yield f"{path}.{name}", doc


def main() -> None:
    """Write the hashes."""
    import torch

    seen: set[str] = set()
    members: dict[str, str] = {}
    for name, doc in docstrings():
        new = dict.fromkeys(gram for gram in ngrams(doc) if gram not in seen)
        seen.update(new)
        if new:
            members[name] = " ".join(sorted(new))
    version = torch.__version__.partition("+")[0]
    HASHES.write_text(json.dumps({"torch": version, "members": members}, indent=1) + "\n", encoding="utf-8")
    print(f"{HASHES.name}: {len(seen)} hashes of {len(members)} docstrings of torch {version}")


if __name__ == "__main__":
    main()
