"""The options of the extension, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from sphinx.config import ENUM

from gradspec.law import Rank

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
        default: Any = option.default if option.default_factory is MISSING else option.default_factory()
        if isinstance(default, tuple):
            default = list(default)  # `-D gradspec_records=a,b` works only for lists
        kinds: Any = [list, tuple, str] if isinstance(default, list) else [type(default)]
        kinds = ENUM(*(rank.value for rank in Rank)) if option.name == "fail_on" else kinds
        app.add_config_value(f"gradspec_{option.name}", default, "env", types=kinds)


def options(config: Config) -> Options:
    """Return the options of a build; one path is as good as a list of one."""
    found: dict[str, Any] = {option.name: getattr(config, f"gradspec_{option.name}") for option in fields(Options)}
    return Options(**found | {name: (found[name],) for name in _PATHS if isinstance(found[name], str)})
