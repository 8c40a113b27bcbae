"""A rebuild in which `sphinx.ext.viewcode` imports only the modules whose pages it writes again.

To see whether the page of a module is older than the module, viewcode imports each one: torch, for one page that
someone has edited. Here the file is found without an import, and viewcode passes over what has not changed.
"""

from __future__ import annotations

from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    """Look before viewcode (500) does, and after a project has changed its list."""
    app.connect("html-collect-pages", _pass_over_current, priority=490)


def source_of(module: str) -> Path | None:
    """Return the file of a module, without importing it or the packages that it is in.

    Args:
        module: its full name.
    """
    path: Any = None
    found: ModuleSpec | None = None
    parts = module.split(".")
    for i in range(len(parts)):
        found = PathFinder.find_spec(".".join(parts[: i + 1]), path)
        if found is None:
            return None
        path = found.submodule_search_locations or []
    return Path(found.origin) if found is not None and found.has_location and found.origin else None


def _pass_over_current(app: Sphinx) -> list[tuple[str, dict[str, Any], str]]:
    modules = getattr(app.env, "_viewcode_modules", None)
    if modules:
        # The pickled environment has been written: this list is of this build only.
        kept = {name: False if found and _is_current(app, name) else found for name, found in modules.items()}
        app.env._viewcode_modules = kept  # type: ignore[attr-defined]
    return []


def _is_current(app: Sphinx, module: str) -> bool:
    suffix = getattr(app.builder, "out_suffix", ".html")
    page = app.outdir / "_modules" / (module.replace(".", "/") + suffix)
    try:
        source = source_of(module)
        return source is not None and source.stat().st_mtime <= page.stat().st_mtime
    except (OSError, ImportError, ValueError):
        return False
