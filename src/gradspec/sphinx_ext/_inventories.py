"""Intersphinx without a network: a list of names that a reviewer can read becomes an inventory at build time."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.errors import ConfigError

from gradspec.sphinx_ext._config import options
from gradspec.sphinx_ext._warnings import GradspecWarning, warn

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config


def inventory(text: str, project: str, *, where: str = "the list") -> bytes:
    """Return an intersphinx inventory.

    Args:
        text: a line each of "NAME ROLE ADDRESS", `$` in the address standing for the name; `#` starts a comment line.
        project: the name of the project.
        where: how a message names the list.

    Raises:
        ConfigError: a line that has not three words.
    """
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 3:
            raise ConfigError(f"{where}:{number}: {line!r} is not of the form NAME ROLE ADDRESS")
        name, role, address = words
        entries.append(f"{name} {role} 1 {address} -\n")
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    return head.encode() + zlib.compress("".join(entries).encode())


def setup(app: Sphinx) -> None:
    """Make the inventories before intersphinx looks at its mapping (800)."""
    app.connect("config-inited", _make, priority=700)


def _make(app: Sphinx, config: Config) -> None:
    lists = options(config).inventories
    if not lists:
        return
    if "sphinx.ext.intersphinx" not in app.extensions:
        warn(GradspecWarning.CONFIG, "gradspec_inventories needs sphinx.ext.intersphinx among the extensions")
        return
    folder = Path(app.doctreedir) / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    mapping = dict(config.intersphinx_mapping)
    for name, (address, path) in lists.items():
        source = Path(app.confdir or ".") / path
        if not source.is_file():
            warn(GradspecWarning.CONFIG, f"gradspec_inventories[{name!r}]: there is no {source}")
            continue
        try:
            listed = inventory(source.read_text(encoding="utf-8"), name, where=str(source))
        except ConfigError as error:
            warn(GradspecWarning.CONFIG, str(error))
            continue
        made = folder / f"{name}.inv"
        made.write_bytes(listed)
        mapping[name] = (address, (str(made),))
    config.intersphinx_mapping = mapping
