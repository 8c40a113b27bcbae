"""The documentation of published projects, built with the extension and without: what it takes out, what it costs.

`nox -s lab -- projects` fetches their sources and runs this. Each build is of a project as its authors publish it, but
for what needs the network or other programs: links to other sites, and notebooks. Where the build with the extension
warns of anything that the other does not, the script fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bs4 import BeautifulSoup

from gradspec.report import write_experiment

#: How often each is built; times are the medians, and the two ways take turns.
ROUNDS = 3
EXTENSION = "gradspec.sphinx_ext"
#: What is laid behind every `conf.py`: no network, no notebooks, a theme without options of another version.
OFFLINE = """
extensions = [name for name in extensions if name not in ("nbsphinx", "m2r2")]
intersphinx_mapping, html_theme_options = {}, {}
"""
#: numpydoc in the place of napoleon: these docstrings are in its form, or in none.
NUMPYDOC = """
extensions = [name for name in extensions if name != "sphinx_autodoc_typehints"]
extensions = ["numpydoc" if name == "sphinx.ext.napoleon" else name for name in extensions]
"""
#: Pages that Sphinx makes itself.
MADE = ("genindex", "py-modindex", "search", "_modules")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One way to build a project."""

    project: str
    docs: str = "docs/source"
    #: What differs from its authors' `conf.py`: a theme, or another extension.
    way: str = "as published"
    conf: str = ""


def _themed(project: str, *themes: str) -> Iterator[Setup]:
    for theme in themes:
        yield Setup(project=project, way=theme, conf=f"html_theme = {theme!r}\n")


SETUPS = (
    Setup(project="linear_operator"),
    *_themed("linear_operator", "alabaster", "furo", "pydata_sphinx_theme"),
    Setup(project="gpytorch"),
    Setup(project="gpytorch", way="with numpydoc", conf=NUMPYDOC),
    *_themed("linear_operator", "sphinx_rtd_theme"),  # last: pages count the measurements of the record
)


def build(source: Path, setup: Setup, extension: bool, folder: Path) -> tuple[float, list[str], Path]:
    """Build a project below a folder; return the seconds, the warnings without their lines, and the pages."""
    copy, out = folder / "project", folder / "html"
    for old in (copy, out):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(source, copy)
    with (copy / setup.docs / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write(OFFLINE + setup.conf + (f"extensions.append({EXTENSION!r})\n" if extension else ""))
    words = [sys.executable, "-m", "sphinx", "-q", "-E", "-b", "html", str(copy / setup.docs), str(out)]
    surroundings = {**os.environ, "SKIP_EXAMPLES": "1", "PYTHONWARNINGS": "ignore", "NO_COLOR": "1"}
    began = time.monotonic()
    done = subprocess.run(words, env=surroundings, capture_output=True, text=True, check=False, timeout=900)
    took = time.monotonic() - began
    if done.returncode:
        sys.exit(f"{setup.project} ({setup.way}) is not built: {done.stderr[-2000:]}")
    said = [line for line in done.stderr.splitlines() if re.search(r"WARNING|ERROR|CRITICAL", line)]
    return took, [re.sub(r":\d+: ", ": ", line.replace(str(folder), "")) for line in said], out


def counted(pages: Path) -> dict[str, int]:
    """Return how many words and how many members the pages of a project show."""
    words = members = 0
    for page in sorted(pages.rglob("*.html")):
        if page.relative_to(pages).parts[0].removesuffix(".html") in MADE:
            continue
        soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
        body = soup.select_one("[itemprop=articleBody], div.body, article")
        if body is not None:
            words += len(body.get_text(" ").split())
            members += len(body.select("dt.sig, table.autosummary tr"))
    return {"words": words, "members": members}


def measured(sources: Path, setup: Setup) -> tuple[dict[str, Any], Counter[str]]:
    """Return what was measured of one way to build a project, and the warnings that only the extension brings."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    warnings: dict[bool, list[str]] = {}
    found: dict[bool, Mapping[str, int]] = {}
    (source,) = sources.glob(f"{setup.project}-*[0-9]")
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for extension in (False, True):
                took, warnings[extension], pages = build(source, setup, extension, Path(folder))
                seconds[extension].append(took)
                found[extension] = counted(pages)
    new = Counter(warnings[True]) - Counter(warnings[False])
    row: dict[str, Any] = {"project": f"{source.name.replace('-', ' ')}, {setup.way}", "new warnings": new.total()}
    for extension, name in ((False, "without"), (True, "with")):
        numbers = {"warnings": len(warnings[extension]), **found[extension]}
        row[name] = {**numbers, "seconds": round(median(seconds[extension]), 1)}
    return row, new


def main() -> None:
    """Build all, print what was found, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, help="the folder with the unpacked source of each project")
    parser.add_argument("--out", type=Path, help="where to write the record")
    options = parser.parse_args()
    rows, worse = [], 0
    for setup in SETUPS:
        row, new = measured(options.sources.resolve(), setup)
        rows.append(row)
        worse += new.total()
        print(row, flush=True)
        for warning, count in new.most_common(5):
            print(f"  only with the extension, {count}: {warning}", flush=True)
    if options.out:
        content = {
            "name": "other_projects",
            "what": "the documentation of published projects, built without the extension and with it",
            "builds": ROUNDS,
            "measurements": rows,
        }
        write_experiment(content, options.out, command="nox -s lab -- projects")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
