"""The environments of nox sessions: what they install, and where they put what they fetch.

This file and `_tasks.py` run in the Python of nox, which has neither gradspec nor torch.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parents[3]
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
BUILD = ROOT / "build"
SITE_RECORD = "build/records/site.json"
TARGETS = ["gradspec.functions", "gradspec.operators", "gradspec.nn", "gradspec.text"]
#: The record is written whatever it says; that it says `broken` fails the build, by the name of the page.
CHECK = ("gradspec", "check", *TARGETS, "--record", SITE_RECORD, "--exit-zero")
BUILD_SITE = ("sphinx-build", "-n", "-W", "-c", "conf", "docs", "build/html")
#: Processes share the processors; threads of each beside them would only wait for one another.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
#: Compiles what is installed, on all processors.
COMPILE = "import compileall, sysconfig; compileall.compile_dir(sysconfig.get_path('purelib'), quiet=2, workers=0)"


def install(session: nox.Session, *groups: str) -> None:
    """Install the project, editable, with what every session may use and further groups, at the tested versions.

    `nox --no-venv` runs a session in the environment that is active, and leaves that as it is.
    """
    if session.venv_backend == "none":
        return
    tools = nox.project.dependency_groups(PYPROJECT, "dev", *groups)
    session.install("--no-compile", "-c", "conf/constraints.txt", "torch", "-e", ".", *tools)
    # pip compiles on one processor, and the processes of a session would all compile the same, at the same time.
    session.run("python", "-c", COMPILE)


def needed(session: nox.Session, *programs: str) -> list[str]:
    """Return the paths of programs that pip does not install; say which ones are missing."""
    found = [shutil.which(program) for program in programs]
    if missing := [program for program, path in zip(programs, found, strict=True) if path is None]:
        session.error(f"not on the PATH: {', '.join(missing)}; on Debian: apt-get install chromium npm default-jre")
    return [str(path) for path in found]


def a_site(session: nox.Session, *groups: str) -> str:
    """Return the folder of the site that `nox -s docs` built; build one where there is none."""
    install(session, *groups)
    if not (BUILD / "html" / "index.html").is_file():
        session.run(*CHECK)
        session.run(*BUILD_SITE)
    return "build/html"


def unpacked(session: nox.Session, package: str) -> Path:
    """Download the source distribution of a package, without what it needs, and return the folder it unpacks to."""
    into = BUILD / "sdists"
    options = ("--quiet", "--no-deps", "--no-binary", package.partition("==")[0], "--dest", str(into))
    session.run("python", "-m", "pip", "download", *options, package)
    folder = into / package.replace("==", "-")
    with tarfile.open(f"{folder}.tar.gz") as archive:
        archive.extractall(into, filter="data")
    return folder.resolve()
