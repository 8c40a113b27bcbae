"""No code decides by the sentence of a finding: what decides is a value beside it, a status, a rank or a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src"
#: The fields of a finding and of a reason that are sentences.
SENTENCES = ("message", "likely", "words")
#: What asks a text for another one. `split` is how a sentence is written on one line.
ASKS = ("startswith", "endswith", "find", "index", "count", "partition", "rpartition", "removeprefix", "removesuffix")
#: What may read one, and why.
MAY = {
    # A summary of published implementations keeps the message of an error, and no more; authors' words are held to it.
    "gradspec/sphinx_ext/page/_differences.py": ["re.search('\\\\braised\\\\b', v.finding.message)"],
}


def is_sentence(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in SENTENCES


def compared(tree: ast.AST) -> Iterator[str]:
    """Yield what compares a sentence with another text, or searches it."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                found = any(map(is_sentence, (left, *others)))
            case ast.Call(func=ast.Attribute(value=value, attr=asks), args=given):
                searches = isinstance(value, ast.Name) and value.id == "re" and any(map(is_sentence, given))
                found = searches or (asks in ASKS and is_sentence(value))
            case _:
                found = False
        if found:
            yield ast.unparse(node)


def test_no_code_compares_a_sentence():
    found = {
        path.relative_to(ROOT).as_posix(): said
        for path in ROOT.rglob("*.py")
        if (said := list(compared(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == MAY, "decide by the status, the rank, the details or the reason of the finding"


def test_what_compares_a_sentence_is_found():
    lines = (
        "finding.message == OTHER",
        "OTHER in finding.likely",
        "finding.message.startswith(KINK)",
        "reason.words.count('x')",
        "re.search('raised', v.finding.message)",
    )
    for line in lines:
        assert list(compared(ast.parse(line))), line
    assert not list(compared(ast.parse("' '.join(finding.message.split())\nreason.kind == 'kink'")))
