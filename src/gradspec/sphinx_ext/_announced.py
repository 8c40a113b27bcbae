"""Directives that packages announce as entry points `gradspec.directives`, each imported when a page has it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar, cast

from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from gradspec._one_line import one_line
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

GROUP = "gradspec.directives"
#: What docutils and MyST read of the class of a directive before they make one.
_READ = frozenset(
    ("required_arguments", "optional_arguments", "final_argument_whitespace", "option_spec", "has_content")
)


def setup(app: Sphinx) -> None:
    """Register the announced directives by their names; none is imported for it."""
    for entry in entry_points(group=GROUP):
        app.add_directive(entry.name, announced(entry))


def announced(entry: EntryPoint) -> type[SphinxDirective]:
    """Return a class that is the one of the entry point as soon as anything asks it for more than its name."""
    facts = {"__doc__": f"The directive `{entry.name}`.", "_entry": entry}
    return cast("type[SphinxDirective]", _Announced(entry.name, (SphinxDirective,), facts))


class _Announced(type):
    _entry: EntryPoint

    def __getattribute__(cls, name: str) -> Any:
        return getattr(_loaded(cls._entry), name) if name in _READ else super().__getattribute__(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _loaded(cls._entry)(*args, **kwargs)


@cache
def _loaded(entry: EntryPoint) -> type[SphinxDirective]:
    """Return the class of an entry point, or one that says why there is none."""
    try:
        found = entry.load()
        if not (isinstance(found, type) and issubclass(found, SphinxDirective)):
            raise TypeError(f"it is {found!r}, which is not a subclass of SphinxDirective")
    except Exception as error:  # it is other people's code, which may raise anything
        why = f"entry point {entry.value!r} of {GROUP} raised {one_line(error)}: {entry.name} shows nothing"
        return type("Unusable", (_Unusable,), {"why": why})
    return found


class _AnyOption(dict[str, Any]):
    """Options that nobody declared: each is taken as it is written."""

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class _Unusable(SphinxDirective):
    """Warn, and show nothing."""

    why: ClassVar[str]
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = _AnyOption(name=directives.unchanged)

    def run(self) -> list[nodes.Node]:
        warn_each_build(self, GradspecWarning.IMPORT, self.why)
        return []
