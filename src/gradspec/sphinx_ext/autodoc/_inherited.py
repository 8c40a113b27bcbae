"""The members that a class has from torch: an anchor and an entry in objects.inv each, and none of torch's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes

from gradspec.sphinx_ext.autodoc._torch_bases import documented_name, inherited_names
from gradspec.sphinx_ext.page._links import optional_link
from gradspec.sphinx_ext.page._nodes import paragraph

if TYPE_CHECKING:
    from sphinx.domains.python import PythonDomain


def inherited(cls: type, target: str, domain: PythonDomain) -> list[nodes.Node]:
    """Return the list of names that nothing on the page documents yet, and note them in the Python domain.

    Args:
        cls: the documented class.
        target: its qualified name.
        domain: the Python domain, which knows what the page's author documents.
    """
    listed = nodes.bullet_list(bullet="*", classes=["gradspec-names"])
    for name in inherited_names(cls):
        anchor = f"{target}.{name}"
        if anchor in domain.objects:
            continue
        item = nodes.list_item(
            "",
            paragraph(optional_link("py", "obj", documented_name(cls, name), nodes.literal("", name))),
            ids=[anchor],
        )
        kind = "method" if callable(getattr(cls, name)) else "attribute"
        domain.note_object(anchor, kind, anchor, location=item)
        listed += item
    if not len(listed):
        return []
    base = optional_link("py", "class", "torch.autograd.Function", nodes.literal("", "torch.autograd.Function"))
    return [paragraph("Inherited from ", base, ", which documents them:"), listed]
