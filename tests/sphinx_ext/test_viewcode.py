"""A rebuild imports no module whose page of source code is current, and makes anew the page of one that has changed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gradspec.sphinx_ext.autodoc._viewcode import source_of

if TYPE_CHECKING:
    from sphinx_ext.handmade import Project

MODULE = '''\
"""A module that notes each import of it."""

from pathlib import Path

with Path(__file__).with_name("imports.log").open("a") as log:
    log.write("imported\\n")


def f():
    """Do nothing."""
'''
PAGE = ":orphan:\n\nOther\n=====\n\n.. autofunction:: other.f\n"


def test_a_current_module_is_not_imported_and_stays_listed(project: Project) -> None:
    module, log = project.source / "other.py", project.source / "imports.log"
    module.write_text(MODULE, encoding="utf-8")
    (project.source / "other.rst").write_text(PAGE, encoding="utf-8")
    first = project.build()
    assert (first.returncode, first.warnings) == (0, [])
    assert log.exists()
    listed = first.html("_modules/index")
    assert "other.html" in listed

    log.unlink()
    with (project.source / "matrix.md").open("a", encoding="utf-8") as page:
        page.write("\nOne sentence more.\n")
    second = project.build()
    assert (second.returncode, second.warnings) == (0, [])
    assert "One sentence more." in second.html("matrix")
    assert not log.exists()
    assert second.html("_modules/index") == listed
    assert "Do nothing." in second.html("_modules/other")


def test_the_page_of_a_changed_module_is_made_anew(project: Project) -> None:
    module = project.source / "other.py"
    module.write_text(MODULE, encoding="utf-8")
    (project.source / "other.rst").write_text(PAGE, encoding="utf-8")
    built = project.build()
    module.write_text(MODULE.replace("Do nothing.", "Do next to nothing."), encoding="utf-8")
    later = (built.folder / "_modules" / "other.html").stat().st_mtime + 5
    os.utime(module, (later, later))
    assert "Do next to nothing." in project.build().html("_modules/other")


def test_the_source_is_found_without_an_import() -> None:
    loaded = set(sys.modules)
    found = source_of("gradspec.functions._grad_factor._function")
    assert found is not None
    assert found.parts[-2:] == ("_grad_factor", "_function.py")
    assert source_of("gradspec.no_such_module") is None
    assert source_of("no_such_package.module") is None
    assert source_of("sys") is None
    assert not {name for name in set(sys.modules) - loaded if name.startswith("gradspec.functions")}
