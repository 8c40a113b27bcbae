r"""Every example in the docstrings prints what it says.

Why it matters: a reader types the example first.

What breaks it: code that changed and a docstring that did not.

Remedy: copy the printed output into the docstring, or mend the code.
"""

from __future__ import annotations

import doctest
import io
import sys
from typing import Any

from gradspec.law import ALL_KINDS, AnyTrial, Finding, Law, Status, broken
from gradspec.spec._sheet import qualified_name


class _Recorder(doctest.DocTestRunner):
    """Runs examples, and keeps what each printed."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.examples: list[dict[str, str]] = []

    def _keep(self, example: doctest.Example, got: str) -> None:
        self.examples.append({"source": example.source, "want": example.want, "got": got})

    # doctest calls these three with arguments that they do not all need.
    def report_success(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self._keep(example, got)

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self._keep(example, got)

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        # As doctest compares an exception that an example expects: by its type and message.
        self._keep(example, f"{exc_info[0].__name__}: {exc_info[1]}\n")


def _check(trial: AnyTrial) -> Finding:
    document = next(d for d in trial.spec.documented if qualified_name(d) == trial.case.name)
    module = sys.modules[document.__module__]
    names = {document.__name__: document, **{d.__name__: d for d in trial.spec.documented}}
    tests = doctest.DocTestFinder().find(
        document, document.__qualname__, module=module, globs={**vars(module), **names}
    )
    recorder = _Recorder()
    failed = sum(recorder.run(test, out=io.StringIO().write).failed for test in tests)
    details = {"examples": recorder.examples}
    if not recorder.examples:
        return broken("the docstring has no example", details=details)
    if not failed:
        return Finding(status=Status.HOLDS, details=details)
    wrong = next(e for e in recorder.examples if e["got"] != e["want"])
    return broken(
        "an example does not print what it says",
        argument=wrong["source"].strip(),
        got=wrong["got"].strip(),
        expected=wrong["want"].strip() or "nothing",
        details=details,
    )


EXAMPLES = Law(
    name="examples",
    family="values",
    statement=r"\text{printed} = \text{documented}",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    kinds=ALL_KINDS,
    over="documents",
)
