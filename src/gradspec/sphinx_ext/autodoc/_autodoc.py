"""Autodoc pages without torch's own words: events that clean any project's pages, with no change to them.

A subclass of `torch.autograd.Function` inherits its docstrings and two dozen members, and autodoc shows them all.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util.inspect import stringify_signature

from gradspec.sphinx_ext.autodoc._signatures import call_signature, forward_signature, is_function, without_first
from gradspec.sphinx_ext.autodoc._torch_bases import boilerplate, inherited_names, normalised, torch_base
from gradspec.sphinx_ext.domain._within import lies_within

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: The methods that torch calls with ctx first, beside the combined form of `forward`.
TAKE_CTX = ("setup_context", "backward", "vjp", "jvp")
#: Where these are kept, as long as the page is read.
_CALLS = "gradspec-calls"
#: Where the page of a spec keeps the objects whose examples it shows, as long as its members are read.
SHOWN = "gradspec-examples"


def setup(app: Sphinx) -> None:
    """Connect the events; before napoleon and sphinx-autodoc-typehints (500), which would answer first."""
    app.setup_extension("sphinx.ext.autodoc")  # otherwise its events are unknown where we are listed first
    app.connect("autodoc-process-docstring", _drop_boilerplate, priority=300)
    app.connect("autodoc-process-docstring", _drop_shown_examples, priority=310)
    app.connect("autodoc-process-signature", _signature, priority=300)
    app.connect("autodoc-skip-member", _skip_torch, priority=300)
    app.connect("autodoc-process-bases", _public_bases)
    app.connect("object-description-transform", _show_apply)


def _drop_boilerplate(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    base = torch_base(obj) or torch_base(_owner(name))
    # By text, not by `__doc__`: an overridden method has none, and autodoc takes the one it inherits.
    if base is not None and normalised(" ".join(lines)) in boilerplate(base):
        lines.clear()


def _drop_shown_examples(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Drop the examples that the page of a spec shows above its members; those of a class hold its methods' too."""
    if not lies_within(name, app.env.current_document.get(SHOWN) or ()):
        return
    start = next((i for i, line in enumerate(lines) if line.strip() in ("Example:", "Examples:")), None)
    if start is not None:
        end = next((i for i in range(start + 1, len(lines)) if lines[i] and not lines[i][0].isspace()), len(lines))
        del lines[start:end]


def _signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, args: str | None, returns: str | None
) -> tuple[str, str] | None:
    if args is None:
        return None  # Sphinx 9.0 to 9.2 raise where a handler answers and there was no signature
    method = name.rpartition(".")[2]
    if isinstance(obj, type):
        found = call_signature(obj)
    elif method == "forward":
        found = forward_signature(_owner(name))
    elif method in TAKE_CTX and is_function(_owner(name)):
        found = without_first(obj)
    else:
        return None
    if found is None:
        return None
    if isinstance(obj, type):
        _calls(app).add(name)
    text, _, result = stringify_signature(
        found,
        show_annotation=app.config.autodoc_typehints in ("signature", "both"),
        unqualified_typehints=app.config.autodoc_typehints_format == "short",
    ).partition(" -> ")
    return text, "" if isinstance(obj, type) else result


def _show_apply(app: Sphinx, domain: str, objtype: str, content: addnodes.desc_content) -> None:
    """Write `.apply` behind the name of a Function whose signature is that of the call: an instance takes none."""
    called = _calls(app)
    for head in content.parent.children if domain == "py" and objtype == "class" else ():
        if isinstance(head, addnodes.desc_signature) and f"{head['module']}.{head['fullname']}" in called:
            place = next(k for k, part in enumerate(head.children) if isinstance(part, addnodes.desc_name))
            head.insert(place + 1, addnodes.desc_addname(".apply", "", nodes.Text(".apply")))


def _calls(app: Sphinx) -> set[str]:
    """Return the names of the Functions of this page whose headings show the call."""
    return app.env.current_document.setdefault(_CALLS, set())  # type: ignore[return-value]  # what is kept there is ours


def _skip_torch(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    if what == "module":
        return None  # autodoc says what the owner is, autosummary what the member is
    for base in _loaded_bases():
        if name in inherited_names(base) and _same(obj, getattr(base, name, None)):
            return True
        # An annotation without a value, as `training: bool`: a mark of Sphinx represents it, before 9.0 a bare object.
        mark = type(obj) is object or type(obj).__module__.startswith("sphinx.")
        if mark and name in vars(base).get("__annotations__", {}):
            return True
    return None


def _same(obj: Any, other: Any) -> bool:
    function, theirs = getattr(obj, "__func__", obj), getattr(other, "__func__", other)
    if isinstance(function, bool | int | str | None.__class__):
        return bool(function == theirs)
    return function is theirs


def _public_bases(app: Sphinx, name: str, obj: Any, options: Any, bases: list[Any]) -> None:
    for i, base in enumerate(bases):
        if base in _loaded_bases():
            public = "torch.autograd.Function" if base.__name__ == "Function" else "torch.nn.Module"
            bases[i] = f":py:class:`{public}`"


def _loaded_bases() -> list[type]:
    modules = (("torch.autograd.function", "Function"), ("torch.nn.modules.module", "Module"))
    return [getattr(sys.modules[module], name) for module, name in modules if module in sys.modules]


def _owner(name: str) -> Any:
    """Return the class that a member's full name is in, if it is imported."""
    parts = name.split(".")[:-1]
    for cut in range(len(parts), 0, -1):
        if (found := sys.modules.get(".".join(parts[:cut]))) is not None:
            for part in parts[cut:]:
                found = getattr(found, part, None)
            return found
    return None
