"""Where the definition of a root is: a file and a line of the source as it is now; nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradspec._record._definitions import definitions
from gradspec._record._modules import Modules, split_root
from gradspec._record._roots import shown_path


@dataclass(frozen=True)
class Where:
    """A line of a file."""

    #: The path from the working directory; an absolute one outside of it.
    file: str
    #: From 1.
    line: int

    @property
    def is_here(self) -> bool:
        """Whether the file lies below the working directory, as what a repository holds does."""
        return not Path(self.file).is_absolute()


def where_is(root: str) -> Where | None:
    """Return where a root is defined: `module:NAME`, or a file in place of the module; None if it is not found.

    A name that the file does not define, as one that it imports, is on its first line.
    """
    home, name = split_root(root)
    module = Modules(ours=frozenset({home.partition(".")[0]})).find(home)
    if module is None:
        return None
    try:
        found = [part.node for part in definitions(module)[0] if name.partition(".")[0] in part.binds]
    except (SyntaxError, OSError, UnicodeDecodeError):
        return None
    return Where(shown_path(module.file), _line(found, name.split(".")[1:]) if found else 1)


def _line(found: Sequence[ast.stmt], names: Sequence[str]) -> int:
    """Return the line of the last statement that binds a name, or of a name within that."""
    node = found[-1]
    for name in names:
        inner = [part for part in ast.walk(node) if getattr(part, "name", "") == name and isinstance(part, ast.stmt)]
        if not inner:
            break
        node = inner[0]
    return node.lineno
