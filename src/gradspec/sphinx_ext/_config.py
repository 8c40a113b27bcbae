"""The options of the extension, each declared once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec.law import Rank
from gradspec.sphinx_ext._warnings import GradspecWarning, warn

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config


#: The options that list paths.
_PATHS = ("records", "committed_records")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `conf.py`. Each field `NAME` is the value `gradspec_NAME`; paths are relative to `conf.py`."""

    #: Records made for this build, by `gradspec check TARGET --record PATH`. A failure in one of them is a warning.
    records: tuple[str, ...] = ()
    #: Records that were committed: other devices, other implementations. They are shown, and never warn.
    committed_records: tuple[str, ...] = ()
    #: The folder of the pages of laws, relative to the source folder. A build writes a page for each law of `records`
    #: there and removes that of a law which is gone; let git ignore them. Empty: you write these pages.
    law_pages: str = ""
    #: Text inventories for intersphinx, by name: the address of the documentation, and the path of the list.
    inventories: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    #: The full names of what annotations abbreviate.
    annotations: Mapping[str, str] = field(default_factory=lambda: {"Tensor": "torch.Tensor"})
    #: Whether the defaults that docstrings state are held to the signatures of all that autodoc shows, not only of what
    #: a spec documents.
    check_defaults: bool = False
    #: Whether the head of each page describes it in its first words, where its author has not.
    descriptions: bool = True
    #: The least dangerous rank of a failure that is a warning: "wrong", "refused", "waste" or "limit".
    fail_on: str = "refused"
    #: Sections that your pages have beside a spec, by their titles: the section of the spec before which each is shown,
    #: or the next one that the page has. Other sections follow the spec, as they are written.
    sections: Mapping[str, str] = field(default_factory=dict)
    #: Whether each page gets a twin in Markdown beside it, `NAME.html.md`, and the site an `llms.txt` that lists them.
    llms: bool = False


def setup(app: Sphinx) -> None:
    """Declare every option to Sphinx."""
    for option in fields(Options):
        default = _default(option)
        kinds: Any = [list, tuple, str, type(Path())] if isinstance(default, list) else [type(default)]
        app.add_config_value(f"gradspec_{option.name}", default, "env", types=kinds)
    app.connect("config-inited", _check, priority=100)  # before anything uses an option


def _default(option: Field[Any]) -> Any:
    default: Any = option.default if option.default_factory is MISSING else option.default_factory()
    return list(default) if isinstance(default, tuple) else default  # `-D gradspec_records=a,b` works only for lists


def _check(app: Sphinx, config: Config) -> None:
    """Put the default in the place of a value that an option cannot have, with a warning.

    Not an error: Sphinx 9 shows one as a fault of the extension, with a traceback and a request to report it.
    """
    for option in fields(Options):
        name = f"gradspec_{option.name}"
        accepts, words = _accepted(option.name)
        if not accepts(value := getattr(config, name)):
            warn(GradspecWarning.CONFIG, f"{name} is {value!r}, so the build uses its default: it takes {words}")
            setattr(config, name, _default(option))
    known = [value.name for value in config if value.name.startswith("gradspec_")]
    for name in getattr(config, "_raw_config", {}):  # Sphinx has no other list of what conf.py sets
        near = get_close_matches(name, known, 1, cutoff=0.8) if name.startswith("gradspec_") else []
        if near and name not in known:
            warn(GradspecWarning.CONFIG, f"there is no option {name}: did you mean {near[0]}?")


def _accepted(name: str) -> tuple[Callable[[Any], bool], str]:
    """Return what tells whether an option may have a value, and its words: "True or False"."""
    ranks = [rank.value for rank in Rank]
    if name in _PATHS:
        return lambda value: _is_path(value) or _all_of(value, _is_path), 'a list of paths, as ["record.json"]'
    if name == "fail_on":
        return lambda value: value in ranks, f"one of {', '.join(f'{rank!r}' for rank in ranks)}"
    if name == "law_pages":
        return lambda value: isinstance(value, str), 'the name of a folder, as "laws"'
    if name == "inventories":
        return (
            lambda value: _maps(value, lambda one: _all_of(one, _is_text) and len(one) == 2),
            'names, each with an address and a path, as {"numpy": ("https://numpy.org/doc/stable/", "numpy.txt")}',
        )
    if name == "annotations":
        return lambda value: _maps(value, _is_text), 'abbreviations with full names, as {"Tensor": "torch.Tensor"}'
    if name == "sections":
        return lambda value: _maps(value, _is_text), 'titles with sections of a spec, as {"Use": "Examples"}'
    return lambda value: value in (True, False), "True or False"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _all_of(value: Any, accepts: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and all(map(accepts, value))


def _maps(value: Any, accepts: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value)) and all(map(accepts, value.values()))


def options(config: Config) -> Options:
    """Return the options of a build; one path is as good as a list of one."""
    found: dict[str, Any] = {option.name: getattr(config, f"gradspec_{option.name}") for option in fields(Options)}
    return Options(**found | {name: (found[name],) for name in _PATHS if _is_path(found[name])})
