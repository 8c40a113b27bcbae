"""Run the programs of docs/questions under the installed torch, and record each that prints something else.

`python -m gradspec_lab.versions.questions --out docs/records/questions/torch-2.11.json`, in an environment with that
version.
"""

from __future__ import annotations

import argparse
import doctest
import re
from pathlib import Path
from typing import Any

import torch

from gradspec.report import write_experiment

PAGES = Path(__file__).parents[3] / "docs" / "questions"
_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class _Notes(doctest.DocTestRunner):
    """A runner that notes what differs from the page, and prints nothing."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=doctest.ELLIPSIS)
        self.otherwise: list[dict[str, str]] = []

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        # Of a traceback, where another error was expected, only the error: the rest are paths of this machine.
        lines = got.strip().splitlines() or [""]
        said = lines[-1] if lines[0].startswith("Traceback") else "\n".join(lines)
        self.otherwise.append({"code": example.source.strip(), "got": said})

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        kind, error = exc_info[:2]
        self.otherwise.append({"code": example.source.strip(), "got": f"{kind.__name__}: {error}".splitlines()[0]})


def measured(text: str, page: str) -> tuple[int, list[dict[str, str]]]:
    """Run the programs of a page in one namespace; return how many examples it has, and those that print otherwise."""
    names: dict[str, Any] = {"__name__": "__main__"}
    notes, examples = _Notes(), 0
    for program in _PROGRAM.findall(text):
        if ">>>" not in program:
            exec(compile(program, page, "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(program, names, page, page, 0)
        test.globs = names
        examples += notes.run(test, clear_globs=False).attempted
    return examples, notes.otherwise


def main() -> None:
    """Measure every page, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where to write the record")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pages = {
        path.stem: measured(path.read_text(encoding="utf-8"), path.name)
        for path in sorted(PAGES.glob("*.md"))
        if path.stem != "index"
    }
    otherwise = [{"page": name, **one} for name, (_, found) in pages.items() for one in found]
    content = {
        "name": f"torch {torch.__version__}",
        "what": "the programs of the pages on Function under one version of torch",
        "examples": {name: count for name, (count, _) in pages.items()},
        "otherwise": otherwise,
    }
    command = f"python -m gradspec_lab.versions.questions --out {options.out.as_posix()}"
    write_experiment(content, options.out, command=command)


if __name__ == "__main__":
    main()
