"""The section that says what an operator is to torch: its schema, its name, and the kernels that are registered."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes

from gradspec.sphinx_ext.page._nodes import code, paragraph, table
from gradspec.sphinx_ext.page._view import View


def schema(view: View) -> Iterator[nodes.Node]:
    """Yield the schema, what it says is written, and for which dispatch keys a kernel is registered, as measured."""
    sheet = view.sheet
    yield paragraph(f"Registered as `{sheet['operator']}`, promised on {', '.join(sheet['devices'])}:")
    yield code(sheet["schema"], "text")
    for name in sheet["writes"]:
        yield paragraph(f"A call writes to `{name}`. The laws hand it a copy, and judge that copy as an output.")
    rows = [[nodes.literal(key, key), meaning] for key, meaning in sheet["dispatch"].items()]
    yield table(["Dispatch key with a kernel", "What it is for"], rows)
