"""Every task of the project: `nox --list` shows them, `nox -s NAME` runs one.

pip installs, under the exact versions of conf/constraints.txt, so that a session is the same everywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent / "src"))  # nox runs where gradspec is not installed

from gradspec_lab.tasks import (
    BUILD,
    BUILD_SITE,
    CHECK,
    HASHES,
    ONE_THREAD,
    PYPROJECT,
    ROOT,
    TASKS,
    a_site,
    install,
    install_published,
    needed,
)

#: Every session computes on the CPU, on a machine with a GPU too: what has started threads for a device cannot fork.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
#: Each of the many processes of a session would compile what it imports anew if what is compiled were not kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["tests", "slow", "doctests", "lint", "types", "docs"]

#: Many tests wait, for a process or a server that they have started: half as many workers again as processors.
WORKERS = str(max(2, 3 * (os.cpu_count() or 1) // 2))
#: What a build notes as its time: 2020-02-02, as its backend does where nobody says.
SAME_BYTES = {"SOURCE_DATE_EPOCH": "1580601600"}
#: The checks of the site in a browser.
BROWSER = "tests/browser"
#: What installs the pins of conf/constraints.txt, and nothing else: a file with another hash is refused.
HASHED = ("--require-hashes", "--no-deps", "-r", HASHES)
#: Where the package is built, and unpacked to be tested.
PACKAGE = BUILD / "package"
#: Tests that need nothing of the repository beside themselves.
OF_THE_PACKAGE = ("tests/functions", "tests/laws", "tests/render")
#: Tests that a CUDA device changes.
OF_DEVICES = ("tests/functions", "tests/nn", "tests/laws/test_cuda_graph.py", "tests/engine/test_device.py")
#: The style sheets that are ours.
STATIC = ("conf/static", "src/gradspec/sphinx_ext/static", "src/gradspec_lab/sphinx/static")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the quick tests of behaviour on all processors; `slow` and `docs` run the others. Arguments go to pytest."""
    run_tests(session, "not slow")


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that take many processes: recipes, forms of benchmarks, ranks, stress. Arguments go to pytest."""
    run_tests(session, "slow")


@nox.session
def doctests(session: nox.Session) -> None:
    """Run every example of every docstring; fail if there is none."""
    install(session)
    session.run("pytest", "-n", "auto", "--doctest-modules", "src/gradspec", *session.posargs, env=ONE_THREAD)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting, the direction of imports, and that every import is of a declared package."""
    install(session)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")
    session.run("deptry", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    install(session)
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Verify all specs, write the record, build the site with warnings as errors, test what was built."""
    install(session)
    session.run(*CHECK)
    session.run(*BUILD_SITE)
    session.run("pytest", "-q", "tests/site", env={"GRADSPEC_SITE": "build/html"})
    session.log(f"open {(BUILD / 'html' / 'index.html').as_uri()}")


@nox.session(default=False)
def cuda(session: nox.Session) -> None:
    """Run, on a machine with a CUDA device, the tests of devices. Arguments go to pytest."""
    install(session)
    session.run("pytest", "-n", "4", *OF_DEVICES, *session.posargs, env={**ONE_THREAD, "CUDA_VISIBLE_DEVICES": None})


@nox.session(default=False)
def lab(session: nox.Session) -> None:
    """Measure our evidence again and write its summary; `-- TASK` runs one other task, `-- --list` lists them."""
    name, *session.posargs[:] = session.posargs or ["measure"]
    if name == "--list":
        for task, run in TASKS.items():
            session.log(f"{task:15} {run.__doc__}")
    elif name in TASKS:
        TASKS[name](session)
    elif name in ("measure", "sample"):
        install(session)
        install_published(session, *(("peers", "audits") if name == "measure" else ("peers",)))
        session.run("python", "-m", "gradspec_lab", name, *session.posargs)
    else:
        session.error(f"no task {name!r}: choose from measure, sample, {', '.join(TASKS)}")


@nox.session(default=False)
def browser(session: nox.Session) -> None:
    """Check every page in a real browser with axe, and as HTML; `-- twice` builds two sites and compares them."""
    chromium, node, npm, java = needed(session, "chromium", "node", "npm", "java")
    site = a_site(session)
    if "twice" in session.posargs:
        session.run("python", f"{BROWSER}/build_twice.py", "build/twice")
    # The versions in package.json are exact, and none of the packages depends on another.
    flags = ("--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund")
    session.run(npm, "install", "--prefix", BROWSER, *flags, external=True)
    names = [entry["ours"] for entry in nox.project.load_toml(ROOT / "tests/published_api.toml")["class"]]
    session.run(node, f"{BROWSER}/check.mjs", site, chromium, *names, external=True)
    two_versions(session, site)
    session.run(node, f"{BROWSER}/versions.mjs", "build/versions", chromium, external=True)
    vnu = [java, "-Xss8m", "-jar", f"{BROWSER}/node_modules/vnu-jar/build/dist/vnu.jar", "--errors-only"]
    session.run(*vnu, "--skip-non-html", site, external=True)
    sheets = [str(sheet) for folder in STATIC for sheet in sorted((ROOT / folder).glob("*.css"))]
    session.run(*vnu, "--css", *sheets, external=True)


@nox.session(default=False)
def serve(session: nox.Session) -> None:
    """Show the site on 127.0.0.1, and build it again whenever a page, a docstring or a record changes."""
    a_site(session, "serve")
    watched = [flag for path in ("src", "conf", "build/records") for flag in ("--watch", path)]
    options = ["--host", "127.0.0.1", *watched, "--ignore", "*/__pycache__/*", "-n", "-c", "conf"]
    session.run("sphinx-autobuild", *options, *session.posargs, "docs", "build/html")


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build sdist and wheel twice, the same bytes, and check them; `wheel` is run behind it."""
    session.install(*HASHED)
    once, again, apart = (PACKAGE / name for name in ("once", "again", "apart"))
    shutil.rmtree(PACKAGE, ignore_errors=True)
    build = ("python", "-m", "build", "--no-isolation", "--outdir")
    session.run(*build, str(once), env=SAME_BYTES)
    (sdist,) = once.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(apart, filter="data")
    (unpacked_sdist,) = apart.iterdir()
    session.run(*build, str(again), str(unpacked_sdist), env=SAME_BYTES)
    for built in once.iterdir():
        if built.read_bytes() != (again / built.name).read_bytes():
            session.error(f"{built.name} is built with other bytes from its own sdist")
    session.run("twine", "check", "--strict", *map(str, once.iterdir()))
    session.run("check-wheel-contents", *map(str, once.glob("*.whl")))
    for package in ("gradspec", "gradspec_pytest"):  # the wheel brings these
        shutil.rmtree(unpacked_sdist / "src" / package)
    session.notify("wheel", session.posargs)


@nox.session(default=False)
def wheel(session: nox.Session) -> None:
    """Test the wheel that `nox -s package` built; `nox -P 3.12 -s wheel` under another Python."""
    built, tests = list(PACKAGE.glob("once/*.whl")), list(PACKAGE.glob("apart/*"))
    if not built or not tests:
        session.error("there is no wheel: run `nox -s package` first")
    tools = nox.project.dependency_groups(PYPROJECT, "dev")
    session.install("-c", "conf/constraints.txt", f"{built[0]}[sphinx]", *tools)
    session.chdir(tests[0])
    session.run("pytest", "-n", "auto", *(session.posargs or OF_THE_PACKAGE), env=ONE_THREAD | {"PYTHONPATH": "src"})


def run_tests(session: nox.Session, marked: str) -> None:
    """Run the tests of a tier."""
    install(session)
    # A worker that is done takes over half of what another one still has to do.
    options = ("-n", WORKERS, "--dist", "worksteal", "--durations", "20", "-m", marked)
    session.run("pytest", *options, *session.posargs, env=ONE_THREAD)


def two_versions(session: nox.Session, site: str) -> None:
    """Publish a site, and an older one that lacks a page, into build/versions."""
    versions = BUILD / "versions"
    shutil.rmtree(versions, ignore_errors=True)
    shutil.copytree(site, BUILD / "older", dirs_exist_ok=True)
    inventory = BUILD / "older" / "objects.inv"
    inventory.write_bytes(re.sub(rb"(?m)^# Version: .*$", b"# Version: 0.0.1", inventory.read_bytes(), count=1))
    (BUILD / "older" / "benchmarks.html").unlink()
    for built in ("build/older", site):
        session.run("python", "-m", "gradspec_lab.site.publish", built, str(versions))
