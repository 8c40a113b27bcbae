"""Fallback text for a class without a docstring: how it is called, as the code says."""

from __future__ import annotations

from sphinx.util.inspect import stringify_signature

from gradspec.sphinx_ext.autodoc._signatures import call_signature, instance_signature, is_function


def pointer(name: str, cls: type) -> list[str]:
    """Return the lines of a docstring for a subclass of torch's classes that has none.

    Args:
        name: its full name, as the page shows it.
        cls: the class.
    """
    function = is_function(cls)
    found = call_signature(cls) if function else instance_signature(cls)
    if found is None:
        return []
    arguments = stringify_signature(found, show_annotation=False, show_return_annotation=False)
    how = f"Call it as ``{name}.apply{arguments}``" if function else f"Call an instance of it with ``{arguments}``"
    return [f"{how}." if _has_words(cls) else f"{how}; nothing else is documented.", ""]


def _has_words(cls: type) -> bool:
    """Whether a member that the class defines has a docstring of its own."""
    own = (getattr(member, "__func__", member) for member in vars(cls).values())
    return any(callable(member) and bool(member.__doc__) for member in own)
