"""Arguments as their author wrote them: `xs[0]` of a list, `fc.weight` of a module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._audit._subject import Subject
from gradspec._finding import ALSO, Finding
from gradspec.laws.tensor.support._call import bound
from gradspec.report import Report
from gradspec.spec import Case


def in_words(subject: Subject, cases: Sequence[Case]) -> Callable[[str], str]:
    """Return what puts a text of the laws, which name each tensor of a list for itself, into the words of a call."""
    names = {flat: written for case in cases for flat, written in _names(subject, case)}
    given = subject.signature.parameters  # one of them may have the name of a parameter of the module
    state = {argument: full for argument, full in subject.state.items() if argument != full}
    names |= {argument: f"self.{full}" if full in given else full for argument, full in state.items()}
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, names))})(?!\w)") if names else None
    is_reference = subject.primal is not None and subject.surrogate is None

    def said(text: str) -> str:
        if is_reference:
            text = text.replace("the surrogate of the spec", "the reference").replace("the surrogate", "the reference")
        return pattern.sub(lambda found: names[found[0]], text) if pattern else text

    return said


def reworded(report: Report, said: Callable[[str], str]) -> Report:
    """Return a report whose messages, arguments and likely causes are put into other words."""

    def put(f: Finding) -> Finding:
        details = f.details | ({ALSO: said(f.details[ALSO])} if ALSO in f.details else {})
        return replace(f, message=said(f.message), argument=said(f.argument), likely=said(f.likely), details=details)

    return replace(report, verdicts=tuple(replace(v, finding=put(v.finding)) for v in report.verdicts))


def _names(subject: Subject, case: Case) -> Iterator[tuple[str, str]]:
    """Yield the names of the tensors inside an argument: as the laws have them, and as they are written."""

    def within(flat: str, written: str, value: Any) -> Iterator[tuple[str, str]]:
        is_holder = isinstance(value, dict | list | tuple)
        if not is_holder or not any(isinstance(leaf, Tensor) for leaf in tree_leaves(value)):
            yield flat, written
            return
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from within(f"{flat}_{key}", f"{written}[{key!r}]", item)

    for name, value in bound(subject.signature, case).items():
        yield from ((flat, written) for flat, written in within(name, name, value) if flat != name)
